"""The watch checks the current lesson at each save, and obeys single keys."""

from contextlib import suppress
from dataclasses import dataclass

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from glassformer.tools.learn.examine import Worker, checked_verdict
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.keys import can_read_keys, pressed_key, single_keys
from glassformer.tools.learn.lesson import EVERY, EXERCISES, Lesson, lessons
from glassformer.tools.learn.messages import hint_text, next_command, print_solution, print_verdict

__all__ = ["watch"]

_SECONDS = 0.3  # between two checks of the file's time
_PATIENCE = 5  # such checks; an editor may remove the file for a moment
_BEGIN = """\
Fifteen files build the Transformer part by part; five are harder exercises.
Each save is checked."""
_EARLY = "You have not seen all hints. Press S, with shift, to see the solution."
_OWN = "The check runs again, with your own parts of earlier lessons."


def watch(folder: Folder, console: Console, lesson: Lesson | None = None) -> None:
    """Watch lesson after lesson until the learner quits or all are learned.

    A right lesson stays until the key n; errors of the next lesson would confuse the learner.
    """
    lesson = lesson or folder.next_lesson()
    if lesson:
        console.print(Text(_BEGIN))
        _open(folder, lesson, console)
    with single_keys():
        while lesson:
            lesson = _watch(folder, lesson, console)
    if folder.next_lesson() is None:
        console.print(Text(folder.onward()), soft_wrap=True)
        console.print(Text(f"Harder exercises without hints follow: {', '.join(EXERCISES)}"))
        console.print(Text("The watch checks each of them at a save."))


def _open(folder: Folder, lesson: Lesson, console: Console) -> None:
    file = folder.file(lesson)
    console.print(Text(f"Open {file} in your editor ({lesson.minutes} minutes)."), soft_wrap=True)
    if folder.untouched(lesson):
        console.print("Replace each `raise NotImplementedError` with your lines, and save.")


def _watch(folder: Folder, lesson: Lesson, console: Console) -> Lesson | None:
    """Watch one lesson; return the next one, or None if the learner quits or all are learned.

    The next one comes with the key n, or with a save of its file.
    """
    view = _View(folder, lesson, console)
    checked, saves, missing = 0.0, _saves(folder), 0
    while True:
        with Worker() as worker:
            while saves.get(lesson, checked) == checked:
                key = pressed_key(_SECONDS)
                if key == "q":
                    return None
                if key == "n":
                    if following := folder.next_lesson(after=lesson):
                        _open(folder, following, console)
                    return following
                if key:
                    view.obey(key)
                now = _saves(folder)
                missing = 0 if lesson in now else missing + 1
                if missing == _PATIENCE:
                    view.print_gone()
                others = (each for each in now if now[each] != saves.get(each))
                other = next(others, lesson)
                saves |= now
                if saves.get(lesson) == checked and other != lesson:
                    return other
            checked = saves[lesson]
            view.check(worker)


@dataclass
class _View:
    """The screen of one lesson: its verdicts, and the answers to keys."""

    folder: Folder
    lesson: Lesson
    console: Console
    hole: str = ""
    """The hole of the hints: the first one that is not right."""
    hints: int = 0
    """The number of hints that the learner has seen."""
    right: bool = False

    def check(self, worker: Worker) -> None:
        """Check the file, and print the verdict."""
        # Print only the name, as a path may be longer than the line.
        name = self.folder.file(self.lesson).name
        self.console.print(Rule(name), width=min(self.console.width, 80))
        verdict = checked_verdict(self.folder, self.lesson, worker)
        self.right = verdict.outcome == "right"
        if verdict.hole not in ("", self.hole):
            self.hole, self.hints = verdict.hole, 0
        print_verdict(self.console, self.lesson, verdict)
        self.print_ways()

    def obey(self, key: str) -> None:
        """Print the answer to a key, and the keys."""
        if key == "h":
            self.hints = min(self.hints + 1, 3)
            self.console.print(Text(hint_text(self.lesson, self.hole, self.hints)))
        elif key == "s" and self.lesson.hints and not self.right and self.hints < 3:
            self.console.print(Text(_EARLY))
        elif key in ("s", "S"):
            code = self.folder.code(self.lesson).decode()
            hole = "" if self.right else self.hole or next(iter(self.lesson.holes))
            print_solution(self.console, self.lesson, code, hole, right=self.right)
        elif key == "o":
            from glassformer.tools.learn.own_check import checked_with_own

            self.console.print(Text(_OWN))
            print_verdict(self.console, *checked_with_own(self.folder, self.lesson))
        elif key == "l":
            from glassformer.tools.learn.status import print_list  # imports torch

            print_list(self.console, self.folder)
        self.print_ways()

    def print_gone(self) -> None:
        """Print that the file is gone, and the command that makes it anew."""
        command = self.folder.command("reset", self.lesson.name)
        text = f"{self.folder.file(self.lesson)} is gone. This writes it anew:\n{command}"
        self.console.print(Text(text), soft_wrap=True)

    def print_ways(self) -> None:
        """Print the keys with their actions; without a keyboard, the next command."""
        if not can_read_keys():
            command = next_command(self.folder, self.lesson, 3 if self.right else 0)
            text = Text(f"{command}\nCtrl-C ends the watch", style="dim")
            self.console.print(text, soft_wrap=True)
            return
        ways = ["s solution"]
        if self.right:
            ways = ["s solution and answers"] + ["o own earlier parts"] * (self.lesson.number > 1)
        elif self.lesson.hints:
            hint = "h hint 3 again" if self.hints == 3 else f"h hint {self.hints + 1} of 3"
            ways = [hint, "s solution"]
        keys = "   ".join([*ways, "n next lesson", "l list", "q quit"])
        self.console.print(Text(keys, style="dim"))


def _saves(folder: Folder) -> dict[Lesson, float]:
    """The time of the last save of each lesson's file."""
    saves = {}
    for lesson in lessons(EVERY):
        with suppress(FileNotFoundError):
            saves[lesson] = folder.file(lesson).stat().st_mtime
    return saves
