"""A folder of hand-ins: one learner's folder for each learner, checked together, as a table."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.table import Table

from glassformer.learn.examine import Worker, verdict_on
from glassformer.learn.folder import Folder
from glassformer.learn.lesson import Lesson, lesson, lessons
from glassformer.learn.verdict import Verdict

__all__ = ["check_hand_ins", "folders_in", "table_of"]


def folders_in(directory: Path) -> list[Folder]:
    """The learners' folders in a directory, by name."""
    subdirectories = sorted(path for path in directory.iterdir() if path.is_dir())
    return [folder for folder in map(Folder, subdirectories) if folder.has_lessons()]


def check_hand_ins(folders: list[Folder]) -> Iterator[tuple[str, Verdict]]:
    """The learner's name and the verdict, for each lesson that a learner has begun.

    As many files run at once as this machine has cores.
    """
    begun = [
        (folder, each) for folder in folders for each in lessons() if not folder.untouched(each)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = pool.map(lambda pair: _answer(*pair), begun)
        for (folder, each), answer in zip(begun, answers, strict=True):
            yield folder.path.name, verdict_on(each, folder.file(each), answer)


def _answer(folder: Folder, lesson: Lesson) -> dict[str, Any]:
    with Worker() as worker:
        return worker.answer(lesson, folder.file(lesson))


def table_of(verdicts: list[tuple[str, Verdict]]) -> Table:
    """A row for each learner: the lessons that are right, and the mistakes in the others."""
    table = Table()
    for column in ("learner", "right", "not right yet"):
        table.add_column(column)
    for learner in dict.fromkeys(name for name, _ in verdicts):
        own = [verdict for name, verdict in verdicts if name == learner]
        right = [str(lesson(v.lesson).number) for v in own if v.outcome == "right"]
        wrong = [f"{lesson(v.lesson).number}: {_reason(v)}" for v in own if v.outcome != "right"]
        table.add_row(learner, " ".join(right), "\n".join(wrong))
    return table


def _reason(verdict: Verdict) -> str:
    """The mistakes by their ids, or the kind of the verdict."""
    if verdict.mistakes:
        return " or ".join(" + ".join(mistake) for mistake in verdict.mistakes)
    return "not written yet" if verdict.outcome == "empty" else verdict.outcome
