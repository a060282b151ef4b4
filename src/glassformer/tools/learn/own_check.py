"""A check that runs the learner's own parts of earlier lessons in place of the package's."""

from collections.abc import Sequence
from dataclasses import replace

from glassformer.tools.learn.examine import Worker, checked_once, verdict_on
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import Lesson, lessons
from glassformer.tools.learn.verdict import Verdict

__all__ = ["checked_with_own"]


def checked_with_own(folder: Folder, chosen: Lesson) -> tuple[Lesson, Verdict]:
    """The verdict on a lesson that runs with the learner's earlier parts.

    A wrong earlier lesson gets the verdict in its place. The package's parts stand for lessons that
    are not written yet.
    """
    own: list[Lesson] = []
    for earlier in lessons():
        if earlier.number < chosen.number and not folder.untouched(earlier):
            verdict = Verdict(earlier.name, "right")
            if not folder.learned(earlier):
                verdict = checked_once(folder, earlier)
            if verdict.outcome not in ("right", "empty"):
                line = f"This earlier part of yours is wrong: {folder.file(earlier)}"
                return earlier, replace(verdict, lines=(line, *verdict.lines))
            own += [earlier] if verdict.outcome == "right" else []
    if (alone := checked_once(folder, chosen)).outcome != "right":
        return chosen, alone
    together = _verdict(folder, chosen, own)
    names = ", ".join(each.name for each in own)
    lines = (f"It runs with your parts of these lessons: {names}.",)
    if not own:
        lines = ("You have no right part of an earlier lesson yet.",)
    if together.outcome != "right":
        wrong = (each for each in own if _verdict(folder, chosen, [each]).outcome != "right")
        title = next((f"{each.number}, {each.title}" for each in wrong), names)
        lines = (f"Your file is right with the package's parts, and wrong with yours of {title}.",)
    return chosen, replace(together, lines=(*lines, *together.lines))


def _verdict(folder: Folder, chosen: Lesson, own: Sequence[Lesson]) -> Verdict:
    """The verdict on a lesson's file with the learner's parts of the lessons ``own``."""
    file = folder.file(chosen)
    with Worker() as worker:
        files = {each.name: folder.file(each) for each in own}
        return verdict_on(chosen, file, worker.answer(chosen, file, files))
