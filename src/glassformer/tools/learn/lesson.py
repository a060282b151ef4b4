"""The lessons and the harder exercises, as records: texts, hints and known mistakes.

``lessons/NAME`` holds a lesson: ``lesson.py`` is the learner's file with holes, ``lesson.yaml`` has
the texts and mistakes of a :class:`Lesson`, ``probes.py`` calls a solution. If the package calls a
library, ``plain.py`` has the right solution. A folder of an exercise has no hints, and ``plain.py``
has the solution, because the package has no such part. ``notebook.yaml`` has the cells that all
notebooks share.
"""

import inspect
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from glassformer.support.errors import UsageError, nearest

__all__ = [
    "EVERY",
    "EXERCISES",
    "LESSONS",
    "KnownMistake",
    "Lesson",
    "Question",
    "known_mistakes",
    "lesson",
    "lessons",
]

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
EXERCISES = ("rotary", "grouped", "running", "relative", "minimum_risk")
EVERY = LESSONS + EXERCISES

_HERE = Path(__file__).parent / "lessons"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Question(_Record):
    """An experiment after a lesson, and its outcome."""

    question: str
    answer: str


class KnownMistake(_Record):
    """One mistake: an edit of the right solution.

    Each old text of ``edit`` stands once in the part ``hole``, and the new text takes its place; or
    ``body`` takes the place of the whole body. ``says`` names the mistake, ``costs`` is the harm to
    a translator. ``paper`` quotes the paper; in the file, a mistake without a quote has the quote
    of the mistake above. ``equals`` names a mistake with equal values.
    """

    hole: str
    says: str
    paper: str
    costs: str
    edit: dict[str, str] = Field(default_factory=dict)
    body: str = ""
    equals: str = ""


class Lesson(_Record):
    """One lesson. ``holes`` maps each hole to the part of the package that is its solution.

    ``section`` is the paper's; an exercise has ``source`` instead, and no hints. ``hints`` has
    three hints for each hole. In the file, mistakes stand under the names of their holes.
    """

    name: str
    title: str
    section: str = ""
    source: str = ""
    minutes: int
    difficulty: Literal["easy", "medium", "hard"] = "hard"
    understood: str
    holes: dict[str, str]
    hints: dict[str, tuple[str, str, str]] = Field(default_factory=dict)
    questions: tuple[Question, ...] = ()
    mistakes: dict[str, KnownMistake] = Field(default_factory=dict)

    @field_validator("hints")
    @classmethod
    def _of_each_hole(cls, hints: dict[str, Any], record: ValidationInfo) -> dict[str, Any]:
        if list(hints) != (holes := list(record.data["holes"])):
            raise ValueError(f"hints of {list(hints)}: expected the holes in their order, {holes}")
        return hints

    @field_validator("mistakes", mode="before")
    @classmethod
    def _with_their_holes(cls, holes: Any) -> Any:
        records = {}
        for hole, mistakes in holes.items():
            paper = ""
            for name, mistake in mistakes.items():
                paper = mistake.get("paper", paper)
                records[name] = {"hole": hole, **mistake, "paper": paper}
        return records

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def number(self) -> int:
        return EVERY.index(self.name) + 1

    @property
    def place(self) -> str:
        """The section of the paper, or the source of an exercise."""
        return self.source or f"section {self.section}"

    @property
    def file_name(self) -> str:
        """The name of the learner's file, with a number so that the lessons lie in order."""
        return f"{self.number:02}_{self.name}.py"

    @property
    def template(self) -> str:
        """The learner's file at the beginning, with holes."""
        return (_HERE / self.name / "lesson.py").read_text(encoding="utf-8")

    @property
    def notebook(self) -> str:
        """The learner's file as a notebook: one more cell installs, and another one checks."""
        shared = yaml.safe_load((_HERE / "notebook.yaml").read_text(encoding="utf-8"))
        text = self.template.rstrip() + "\n" + shared["check"].replace("NAME", self.name)
        text = text.replace("# %%\n", f"{shared['install']}\n# %%\n", 1)  # before the first code
        parts = re.findall(r"^# %%([^\n]*)\n(.*?)(?=^# %%|\Z)", text, re.MULTILINE | re.DOTALL)
        cells = [_cell(f"cell-{number}", *part) for number, part in enumerate(parts)]
        return json.dumps({"cells": cells, **shared["form"]}, indent=1)

    def place_of(self, hole: str) -> str:
        """The place of a hole, or of another part in a hole's file."""
        if hole in self.holes:
            return self.holes[hole]
        owner = hole.partition(".")[0]
        known = next(each for each in self.holes if each.partition(".")[0] == owner)
        return self.holes[known].removesuffix(known) + hole

    def solutions(self) -> dict[str, str]:
        """The package's own source of each hole."""
        return {hole: inspect.getsource(part_of(place)) for hole, place in self.holes.items()}


def _cell(name: str, kind: str, text: str) -> dict[str, Any]:
    """A cell of a notebook in the format 4.5."""
    cell: dict[str, Any] = {"id": name, "metadata": {}, "source": text.strip()}
    if "[markdown]" in kind:
        source = re.sub(r"^# ?", "", text.strip(), flags=re.MULTILINE)
        return cell | {"cell_type": "markdown", "source": source}
    return cell | {"cell_type": "code", "execution_count": None, "outputs": []}


def lessons(names: Iterable[str] = LESSONS) -> Iterator[Lesson]:
    """The lessons of ``names`` in that order; by default without the harder exercises."""
    return map(lesson, names)


def known_mistakes() -> dict[str, Lesson]:
    """The id of every known mistake, with its lesson."""
    return {mistake: lesson for lesson in lessons() for mistake in lesson.mistakes}


@cache
def lesson(name: str) -> Lesson:
    """The lesson or exercise of a name or number."""
    if name.isdecimal() and 1 <= int(name) <= len(EVERY):
        name = EVERY[int(name) - 1]
    if name not in EVERY:
        raise UsageError(
            f"unknown lesson {name!r}{nearest(name, EVERY)}:"
            f" expected a number up to {len(EVERY)}, or a name such as {EVERY[0]}"
        )
    record = yaml.safe_load((_HERE / name / "lesson.yaml").read_text(encoding="utf-8"))
    return Lesson(name=name, **record)


def part_of(place: str) -> Any:
    """The object at ``model.attention.MultiHeadAttention.split`` of the package."""
    return resolve_name(f"glassformer.{place}")
