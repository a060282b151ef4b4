"""The verdict of a check, as a record."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Mistake", "Outcome", "Verdict"]

Outcome = Literal["right", "empty", "mistake", "law", "difference", "error"]
Mistake = tuple[str, ...]
"""The ids of mistakes that together explain a learner's values."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one lesson's file.

    ``mistakes`` are known mistakes that explain the values; several if the probes cannot tell the
    mistakes apart. ``lines`` is the message. ``hole`` is the first wrong hole, or empty if all are
    right or the file did not run.
    """

    lesson: str
    outcome: Outcome
    lines: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    hole: str = ""
    printed: str = ""
    """The beginning of the prints of the file."""
