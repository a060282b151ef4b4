"""Checks a folder of hand-ins, which has a folder for each learner."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from glassformer.support.cores import usable_cores
from glassformer.tools.learn.examine import Worker, verdict_on
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import Lesson, lesson, lessons
from glassformer.tools.learn.verdict import Verdict

__all__ = ["cells_of", "check_hand_ins", "folders_in", "line_of"]


def folders_in(directory: Path) -> list[Folder]:
    """The learners' folders in a directory, by name."""
    subdirectories = sorted(path for path in directory.iterdir() if path.is_dir())
    return [folder for folder in map(Folder, subdirectories) if folder.has_lessons()]


def check_hand_ins(folders: Sequence[Folder]) -> Iterator[tuple[str, list[Verdict]]]:
    """Each learner's name and the verdicts on all begun lessons, as soon as they are ready.

    As many files run at once as this process may use cores.
    """
    begun = [
        [(folder, each) for each in lessons() if not folder.untouched(each)] for folder in folders
    ]
    with ThreadPoolExecutor(usable_cores()) as pool:
        answers = pool.map(lambda pair: _answer(*pair), [pair for pairs in begun for pair in pairs])
        for folder, pairs in zip(folders, begun, strict=True):
            verdicts = [verdict_on(each, folder.file(each), next(answers)) for _, each in pairs]
            yield folder.path.name, verdicts


def _answer(folder: Folder, lesson: Lesson) -> dict[str, Any]:
    with Worker() as worker:
        return worker.answer(lesson, folder.file(lesson))


def line_of(learner: str, verdicts: Sequence[Verdict]) -> str:
    """A learner's line: the numbers of right lessons, and a reason for each wrong lesson.

    >>> line_of("ada", [Verdict("attention", "right"), Verdict("padding", "empty")])
    'ada: right 1; 2 not written yet'
    """
    right = [lesson(each.lesson).number for each in verdicts if each.outcome == "right"]
    wrong = [each for each in verdicts if each.outcome != "right"]
    parts = [f"right {' '.join(map(str, right))}"] if right else []
    parts += [f"{lesson(each.lesson).number} {_reason(each)}" for each in wrong]
    return f"{learner}: {'; '.join(parts) or 'nothing begun'}"


def cells_of(verdicts: Sequence[Verdict]) -> list[str]:
    """A cell for each lesson, with "right" or the reason; empty if the learner has not begun it."""
    reasons = {each.lesson: _reason(each) for each in verdicts}
    return [reasons.get(each.name, "") for each in lessons()]


def _reason(verdict: Verdict) -> str:
    """The ids of the mistakes, or else the first line of the message or the outcome."""
    if verdict.mistakes:
        return " or ".join(" + ".join(mistake) for mistake in verdict.mistakes)
    if verdict.outcome in ("right", "empty"):
        return "right" if verdict.outcome == "right" else "not written yet"
    return f"{verdict.outcome}: {verdict.lines[0]}" if verdict.lines else verdict.outcome
