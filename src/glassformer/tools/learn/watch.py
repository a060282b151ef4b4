"""The watch checks the current lesson at each save, and obeys single keys."""

from contextlib import suppress

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from glassformer.tools.learn.examine import Worker, checked_verdict
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.keys import can_read_keys, pressed_key, single_keys
from glassformer.tools.learn.lesson import EXERCISES, Lesson, lessons
from glassformer.tools.learn.messages import hint_text, next_command, print_solution, print_verdict
from glassformer.tools.learn.source import read_source

__all__ = ["watch"]

_SECONDS = 0.3  # between two checks of the file's time
_EARLY = "You have not seen all hints. Press s again to see the solution."


def watch(folder: Folder, console: Console) -> None:
    """Watch lesson after lesson until the learner quits or all are learned.

    A right lesson stays until the key n; errors of the next lesson would confuse the learner.
    """
    lesson = folder.next_lesson()
    if lesson:
        console.print("Fifteen files build the Transformer part by part; each save is checked.")
    with single_keys():
        while lesson and _watch(folder, lesson, console):
            lesson = folder.next_lesson(after=lesson)
    if lesson is None:
        console.print(Text(folder.onward()), soft_wrap=True)
        console.print(Text(f"Harder exercises without hints follow: {', '.join(EXERCISES)}"))
        check = f"A check of one: {folder.command('check', EXERCISES[0])}"
        console.print(Text(check), soft_wrap=True)


def _watch(folder: Folder, lesson: Lesson, console: Console) -> bool:
    """Watch one lesson until the key n; False if the learner quits."""
    file, hole, hints, asked, right = folder.file(lesson), next(iter(lesson.holes)), 0, False, False
    console.print(Text(f"Open {file} in your editor ({lesson.minutes} minutes)."), soft_wrap=True)
    if folder.untouched(lesson):
        console.print("Replace each `raise NotImplementedError` with your lines, and save.")
    checked, saves = 0.0, _saves(folder)
    while True:
        with Worker() as worker:
            while saves[lesson] == checked:
                key = pressed_key(_SECONDS)
                if key in ("q", "n"):
                    return key == "n"
                if key == "h":
                    hints = min(hints + 1, 3)
                    console.print(Text(hint_text(lesson, hole, hints)))
                elif key == "s" and not (asked or right or hints == 3):
                    asked = True
                    console.print(Text(_EARLY))
                elif key == "s":
                    print_solution(console, lesson, read_source(file), "" if right else hole)
                elif key == "o":
                    from glassformer.tools.learn.own_check import checked_with_own

                    print_verdict(console, *checked_with_own(folder, lesson))
                elif key == "l":
                    from glassformer.tools.learn.status import print_status  # imports torch

                    print_status(console, folder)
                if key:
                    console.print(_ways(folder, lesson, hints=hints, right=right))
                before, saves = saves, saves | _saves(folder)
                for other in saves.keys() - {lesson}:
                    if saves[other] != before.get(other):
                        console.print(_saved(folder, other, lesson), soft_wrap=True)
            checked = saves[lesson]
            # Print only the name, as a path may be longer than the line.
            console.print(Rule(file.name), width=min(console.width, 80))
            verdict = checked_verdict(folder, lesson, worker)
            right = verdict.outcome == "right"
            if verdict.hole not in ("", hole):
                hole, hints, asked = verdict.hole, 0, False
            print_verdict(console, lesson, verdict)
            console.print(_ways(folder, lesson, hints=hints, right=right), soft_wrap=True)


def _saves(folder: Folder) -> dict[Lesson, float]:
    """The time of the last save of each lesson's file."""
    saves = {}
    for lesson in lessons():
        with suppress(FileNotFoundError):  # an editor may remove the file for a moment
            saves[lesson] = folder.file(lesson).stat().st_mtime
    return saves


def _saved(folder: Folder, saved: Lesson, watched: Lesson) -> Text:
    """The line about a save of another lesson's file, which the watch does not check."""
    way = "n goes there"
    if not can_read_keys() or folder.next_lesson(after=watched) != saved:
        way = f"this checks it: {folder.command('check', saved.name)}"
    return Text(f"{folder.file(saved).name} was saved; {way}")


def _ways(folder: Folder, lesson: Lesson, *, hints: int, right: bool) -> Text:
    """The keys with their actions; without a keyboard, the next command."""
    hint = "h hint 3 again" if hints == 3 else f"h hint {hints + 1} of 3"
    help_keys = f"{hint}   s solution"
    if right:
        help_keys = "s solution and answers   o own earlier parts"
    keys = f"{help_keys}   n next lesson   l list   q quit"
    if not can_read_keys():
        keys = next_command(folder, lesson, 3 if right else 0) + "\nCtrl-C ends the watch"
    return Text(keys, style="dim")
