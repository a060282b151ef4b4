"""The watch: checks the current lesson at each save, and obeys single keys."""

from contextlib import ExitStack

from rich.console import Console

from glassformer.learn.examine import Worker, checked_verdict
from glassformer.learn.folder import Folder
from glassformer.learn.keys import can_read_keys, pressed_key, single_keys
from glassformer.learn.lesson import EXERCISES, Lesson
from glassformer.learn.messages import hint_command, hint_text, print_verdict, solution_text
from glassformer.learn.source import read_source

__all__ = ["watch"]

_SECONDS = 0.3  # between two looks at the file
_KEYS = "h hint   s solution   n next lesson   l list   q quit"
_EARLY = "Look at the solution before you have tried the hints? Then press s again."
_NO_KEYS = "Ctrl-C ends the watch"


def watch(folder: Folder, console: Console) -> None:
    """Watch lesson after lesson until the learner quits or all are learned.

    Each lesson stays until the key n, a right one too: the next one's errors would only confuse.
    """
    lesson = folder.next_lesson()
    if lesson:
        console.print(
            "Fifteen short files build the Transformer, part by part; each save is checked here.\n"
            f"Open {folder.file(lesson)} in your editor ({lesson.minutes} minutes).\n"
            "Replace `raise NotImplementedError` with your lines, and save.",
            markup=False,
            soft_wrap=True,
        )
    with single_keys():
        while lesson and _watch(folder, lesson, console):
            lesson = folder.next_lesson(after=lesson)
    if lesson is None:
        console.print(
            "All lessons are learned: glassformer learn train builds a translator.\n"
            f"Five harder exercises without hints follow: {', '.join(EXERCISES)}. A check of one:"
            f" glassformer learn check {folder.path} {EXERCISES[0]}",
            markup=False,
            soft_wrap=True,
        )


def _watch(folder: Folder, lesson: Lesson, console: Console) -> bool:
    """Watch one lesson until the key n; False if the learner quits."""
    file, checked, hints, hole, asked = folder.file(lesson), -1.0, 0, "", False
    with ExitStack() as workers:
        worker = workers.enter_context(Worker())
        while True:
            changed = file.stat().st_mtime if file.is_file() else 0.0
            if changed != checked:
                checked = changed
                console.rule(file.name)  # a path may be longer than the line
                verdict = checked_verdict(folder, lesson, worker)
                if verdict.hole not in ("", hole):
                    hole, hints, asked = verdict.hole, 0, False
                hint = hint_command(folder, lesson)
                if can_read_keys():
                    hint = f"h: hint {min(hints + 1, 3)} of 3"
                print_verdict(console, lesson, verdict, hint)
                asked = asked or verdict.outcome == "right"
                console.print(_KEYS if can_read_keys() else _NO_KEYS, style="dim")
                workers.close()
                worker = workers.enter_context(Worker())
            key = pressed_key(_SECONDS)
            if key in ("q", "n"):
                return key == "n"
            if key == "h":
                hints = min(hints + 1, 3)
                console.print(hint_text(lesson, hole, hints), markup=False)
            if key == "s" and not (asked or hints == 3):
                asked = True
                console.print(_EARLY)
            elif key == "s":
                source = read_source(file)
                console.print(solution_text(lesson, source), markup=False, soft_wrap=True)
            if key == "l":
                from glassformer.learn.status import print_status  # with torch

                print_status(console, folder)
