"""The watch: checks the current lesson at each save, and obeys single keys."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from glassformer.learn.examine import Worker, checked_verdict
from glassformer.learn.folder import Folder
from glassformer.learn.lesson import Lesson
from glassformer.learn.words import hint_text, print_verdict, solution_text

__all__ = ["watch"]

_SECONDS = 0.3  # between two looks at the file
_KEYS = "h hint   s solution   n next lesson   l list   q quit"


def watch(folder: Folder, console: Console) -> None:
    """Watch lesson after lesson until the learner quits or all are learned.

    Each lesson stays until the key n, a right one too: the next one's errors would only confuse.
    """
    lesson = folder.next_lesson()
    with _single_keys():
        while lesson and _watch(folder, lesson, console):
            lesson = folder.next_lesson(after=lesson)
    if lesson is None:
        console.print("All lessons are learned: glassformer learn train builds a translator.")


def _watch(folder: Folder, lesson: Lesson, console: Console) -> bool:
    """Watch one lesson until the key n; False if the learner quits."""
    file, checked, hints = folder.file(lesson), -1.0, 0
    with ExitStack() as workers:
        worker = workers.enter_context(Worker())
        while True:
            changed = file.stat().st_mtime if file.is_file() else 0.0
            if changed != checked:
                checked = changed
                console.rule(file.name)  # a path may be longer than the line
                print_verdict(console, lesson, checked_verdict(folder, lesson, worker))
                console.print(_KEYS, style="dim")
                workers.close()
                worker = workers.enter_context(Worker())
            key = _key()
            if key in ("q", "n"):
                return key == "n"
            if key == "h":
                hints = min(hints + 1, 3)
                console.print(hint_text(lesson, hints), markup=False)
            if key == "s":
                source = file.read_text(encoding="utf-8")
                console.print(solution_text(lesson, source), markup=False, soft_wrap=True)
            if key == "l":
                from glassformer.learn.status import print_status  # with torch

                print_status(console, folder)


@contextmanager
def _single_keys() -> Iterator[None]:
    """The terminal hands over each key at once; without a terminal, nothing changes."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _key() -> str:
    """The key that is pressed within a moment; empty if none is."""
    if not sys.stdin.isatty():
        time.sleep(_SECONDS)
        return ""
    ready, _, _ = select.select([sys.stdin], [], [], _SECONDS)
    return os.read(sys.stdin.fileno(), 1).decode(errors="ignore") if ready else ""
