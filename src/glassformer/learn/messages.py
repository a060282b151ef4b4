"""Verdicts, hints and solutions as text for a terminal."""

import difflib
import textwrap
from contextlib import suppress

from rich.console import Console
from rich.text import Text

from glassformer.learn.folder import Folder
from glassformer.learn.lesson import Lesson
from glassformer.learn.source import code_of
from glassformer.learn.verdict import Verdict

__all__ = ["hint_command", "hint_text", "print_verdict", "solution_text"]

_MARKS = {"right": ("right", "green"), "empty": ("not written yet", "yellow")}


def print_verdict(console: Console, lesson: Lesson, verdict: Verdict, hint: str) -> None:
    """The verdict with its lines, the learner's prints, and the way to a ``hint``."""
    mark, colour = _MARKS.get(verdict.outcome, ("not right yet", "red"))
    title = Text(f"{lesson.number}. {lesson.title}: ")
    console.print(title + Text(mark, style=f"bold {colour}"))
    holes = list(lesson.holes)
    if verdict.hole in holes[1:]:
        place = holes.index(verdict.hole)
        done = " and ".join(holes[:place])
        console.print(Text(f"{done} right · now {verdict.hole} ({place + 1} of {len(holes)})"))
    if verdict.printed:
        console.print(Text("Your file prints:\n" + textwrap.indent(verdict.printed.rstrip(), "  ")))
    for line in verdict.lines:
        console.print(Text(line), soft_wrap=False)
    if verdict.hole:
        console.print(Text(hint, style="dim"), soft_wrap=True)
    if verdict.outcome == "right":
        for question in lesson.questions:
            console.print(Text(f"To try: {question.question}"))


def hint_command(folder: Folder, lesson: Lesson) -> str:
    """The command that prints a hint; an exercise has none."""
    kind, action = ("A hint", "hint") if lesson.hints else ("No hints; the solution", "solution")
    return f"{kind}: glassformer learn {action} {folder.path} {lesson.name}"


def hint_text(lesson: Lesson, hole: str, number: int) -> str:
    """The hint of this number on a hole: the idea, the shapes, or almost the code.

    If ``hole`` is empty, it is the first one.
    """
    if not lesson.hints:
        return f"{lesson.title}: a harder exercise has no hints."
    hole = hole or next(iter(lesson.holes))
    hint = textwrap.fill(lesson.hints[hole][number - 1].strip(), 90)
    subject = hole if len(lesson.holes) > 1 else lesson.title
    return f"Hint {number} of 3, {subject}:\n{hint}"


def solution_text(lesson: Lesson, source: str) -> str:
    """The package's own source of each hole, as a diff against the learner's; then the answers.

    Their docstrings are left out, and so is a file that is no Python.
    """
    parts = []
    for hole, solution in lesson.solutions().items():
        mine: list[str] = []
        with suppress(SyntaxError):
            mine = code_of(source, hole).splitlines()
        theirs = code_of(textwrap.dedent(solution), hole.rpartition(".")[2]).splitlines()
        names = ("yours", f"glassformer.{lesson.holes[hole]}")
        parts.append("\n".join(difflib.unified_diff(mine, theirs, *names, lineterm="", n=99)))
    parts += [f"{each.question}\n  {each.answer}" for each in lesson.questions]
    return "\n\n".join(parts)
