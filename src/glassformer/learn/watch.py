"""The watch: checks the current lesson at each save, and obeys single keys."""

import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from glassformer.learn.examine import checked_verdict
from glassformer.learn.folder import Folder
from glassformer.learn.lesson import Lesson
from glassformer.learn.words import hint_text, print_status, print_verdict, solution_text

__all__ = ["watch"]

_SECONDS = 0.3  # between two looks at the file
_KEYS = "h hint   s solution   n next lesson   l list   q quit"


def watch(folder: Folder, console: Console) -> None:
    """Watch lesson after lesson until the learner quits or all are learned.

    A lesson that is right stays until the key n: the next one's errors would only confuse.
    """
    while lesson := folder.current():
        if not _watch(folder, lesson, console):
            return
    console.print("All lessons are learned: glassformer learn train builds a translator of them.")


def _watch(folder: Folder, lesson: Lesson, console: Console) -> bool:
    """Watch one lesson; False if the learner quits."""
    file, checked, hints = folder.file(lesson), -1.0, 0
    with _single_keys():
        while True:
            changed = file.stat().st_mtime if file.is_file() else 0.0
            if changed != checked:
                checked = changed
                console.rule(str(file))
                verdict = checked_verdict(folder, lesson)
                print_verdict(console, lesson, verdict)
                console.print(_KEYS, style="dim")
            key = _key()
            if key == "q":
                return False
            if key == "n" and folder.learned(lesson):
                return True
            if key == "h":
                hints = min(hints + 1, 3)
                console.print(hint_text(lesson, hints), markup=False)
            if key == "s":
                console.print(solution_text(lesson, file.read_text(encoding="utf-8")), markup=False)
            if key == "l":
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
    return sys.stdin.read(1) if ready else ""
