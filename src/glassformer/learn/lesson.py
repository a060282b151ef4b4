"""The lessons in their order, as records: texts, hints and known mistakes.

A lesson has three files: ``lessons/NAME.py`` is the learner's file with its holes,
``lessons/NAME.yaml`` has the texts of this record, ``checks/NAME.py`` has the code that judges.
"""

import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from glassformer.errors import UsageError, nearest

__all__ = ["LESSONS", "Fault", "Lesson", "Question", "known_mistakes", "lesson", "lessons"]

LESSONS = (
    "attention",
    "padding",
    "causal",
    "heads",
    "positions",
    "embeddings",
    "blocks",
    "encoder",
    "decoder",
    "subwords",
    "loss",
    "schedule",
    "greedy",
    "beam",
    "whole",
)

_HERE = Path(__file__).parent / "lessons"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Question(_Record):
    """An experiment after a lesson, and its outcome."""

    question: str
    answer: str


class Fault(_Record):
    """One mistake: a setting of one ``switch`` of the reference in ``checks/NAME.py``.

    Two faults of one switch exclude each other. ``mistake`` names it, ``paper`` quotes the
    paper, ``effect`` is the harm to a translator; ``hint`` is the number of the hint that helps.
    """

    switch: str
    mistake: str
    paper: str
    effect: str
    hint: int = 2


class Lesson(_Record):
    """One lesson. ``holes`` maps each hole to the part of the package that is its solution."""

    name: str
    title: str
    section: str
    minutes: int
    understood: str
    holes: dict[str, str]
    hints: tuple[str, str, str]
    questions: tuple[Question, ...]
    faults: dict[str, Fault]

    @property
    def number(self) -> int:
        return LESSONS.index(self.name) + 1

    @property
    def file_name(self) -> str:
        """The name of the learner's file: in a folder the lessons lie in their order."""
        return f"{self.number:02}_{self.name}.py"

    @property
    def template(self) -> str:
        """The learner's file as it begins, with its holes."""
        return (_HERE / f"{self.name}.py").read_text(encoding="utf-8")

    def solutions(self) -> dict[str, str]:
        """The package's own source of each hole."""
        return {hole: inspect.getsource(part_of(place)) for hole, place in self.holes.items()}


def lessons() -> Iterator[Lesson]:
    """All lessons in their order."""
    return map(lesson, LESSONS)


def known_mistakes() -> dict[str, Lesson]:
    """The id of every known mistake, with its lesson."""
    return {fault: lesson for lesson in lessons() for fault in lesson.faults}


@cache
def lesson(name: str) -> Lesson:
    """The lesson of this name or number."""
    if name.isdecimal() and 1 <= int(name) <= len(LESSONS):
        name = LESSONS[int(name) - 1]
    if name not in LESSONS:
        raise UsageError(
            f"unknown lesson {name!r}{nearest(name, LESSONS)}:"
            " 'glassformer learn --list' shows them all"
        )
    record = yaml.safe_load((_HERE / f"{name}.yaml").read_text(encoding="utf-8"))
    return Lesson(name=name, **record)


def part_of(place: str) -> Any:
    """The object at ``model.attention.MultiHeadAttention.split`` of the package."""
    return resolve_name(f"glassformer.{place}")
