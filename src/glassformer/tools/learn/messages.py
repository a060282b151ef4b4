"""Verdicts, hints and solutions as text for a terminal."""

import ast
import builtins
import difflib
import textwrap
from contextlib import suppress

from rich.console import Console
from rich.text import Text

from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import Lesson
from glassformer.tools.learn.source import body_of
from glassformer.tools.learn.verdict import Verdict

__all__ = ["hint_text", "next_command", "print_solution", "print_verdict"]

_PRINTED = 6  # lines of the learner's prints, so that a verdict fits a terminal of 24 rows
_MARKS = {"right": ("right", "green"), "empty": ("not written yet", "yellow")}


def print_verdict(console: Console, lesson: Lesson, verdict: Verdict) -> None:
    """Print the verdict, with its lines and the learner's prints."""
    mark, colour = _MARKS.get(verdict.outcome, ("not right yet", "red"))
    title = Text(f"{lesson.number}. {lesson.title}: ")
    console.print(title + Text(mark, style=f"bold {colour}"))
    holes = list(lesson.holes)
    if verdict.hole in holes[1:]:
        place = holes.index(verdict.hole)
        if len({hole.rpartition(".")[0] for hole in holes}) == 1:  # methods of one class
            holes = [hole.rpartition(".")[2] for hole in holes]
        done, now = holes[place - 1 : place + 1]
        console.print(Text(f"{done} right · now {now} ({place + 1} of {len(holes)})"))
    if printed := verdict.printed.rstrip().splitlines():
        more = ["…"] * (len(printed) > _PRINTED)
        lines = ("Your file prints:", *(f"  {line}" for line in [*printed[:_PRINTED], *more]))
        console.print(Text("\n".join(lines)), no_wrap=True, overflow="ellipsis")
    for line in verdict.lines:
        console.print(Text(line))
    if verdict.outcome == "right":
        for question in lesson.questions:
            console.print(Text(f"To try: {question.question}"))


def next_command(folder: Folder, lesson: Lesson, shown: int) -> str:
    """The command for the next hint after ``shown`` hints, or for the solution after the last."""
    if shown == 3 or not lesson.hints:
        return f"Next: {folder.command('solution', lesson.name)}"
    number = ("--number", str(shown + 1)) if shown else ()
    return f"Next: {folder.command('hint', lesson.name, *number)}"


def hint_text(lesson: Lesson, hole: str, number: int) -> str:
    """Hint 1, 2 or 3 on a hole: the idea, the shapes, or almost the code.

    An empty ``hole`` stands for the first hole.
    """
    if not lesson.hints:
        return f"{lesson.title}: a harder exercise has no hints."
    hole = hole or next(iter(lesson.holes))
    subject = hole if len(lesson.holes) > 1 else lesson.title
    text = " ".join(lesson.hints[hole][number - 1].split())
    lines = text.replace("; ", "\n") if number == 3 else text  # a statement on each line
    return f"Hint {number} of 3, {subject}:\n{lines}"


def print_solution(
    console: Console, lesson: Lesson, source: str, hole: str = "", *, right: bool = False
) -> None:
    """Print a diff from the learner's body of a hole to the package's body.

    An empty ``hole`` stands for all holes, and then the answers to the questions follow. ``right``
    says that the learner's code is right as it is.
    """
    solutions = lesson.solutions()
    if right:
        console.print("Your code is right; the package's lines (+) are another way.")
    for each in [hole] if hole else solutions:
        mine: list[str] = []
        with suppress(SyntaxError, ValueError):  # the file is not Python
            mine = body_of(source, each).splitlines()
        theirs = body_of(textwrap.dedent(solutions[each]), each.rpartition(".")[2]).splitlines()
        names = (f"your {each}", f"glassformer.{lesson.holes[each]}")
        diff = [*difflib.unified_diff(mine, theirs, *names, lineterm="", n=99)]
        lines = diff[:2] + diff[3:] or [f"Your {each} is the package's."]  # diff[2]: line numbers
        console.print(Text("\n".join(lines)), soft_wrap=True)
        if foreign := _foreign_names("\n".join(theirs), lesson.template):
            lacking = ", ".join(foreign)
            console.print(Text(f"Your file lacks these names, and does without them: {lacking}"))
        console.print()
    for question in () if hole else lesson.questions:
        console.print(Text(f"{question.question}\n{question.answer}\n"))


def _foreign_names(code: str, template: str) -> list[str]:
    """The names that code of the package reads, and that neither it nor a lesson's file defines."""
    read, known = set[str](), set[object](dir(builtins))
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else known).add(node.id)
    for node in ast.walk(ast.parse(template)):
        known |= {getattr(node, part, None) for part in ("id", "arg", "name", "asname")}
    return sorted(read - known)
