"""The verdict of a check, as a record."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Mistake", "Outcome", "Verdict"]

Outcome = Literal["right", "empty", "mistake", "law", "difference", "error"]
Mistake = tuple[str, ...]
"""The ids of the mistakes that together give the same values."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one lesson's file.

    ``mistakes`` are the known mistakes that give just these values; more than one if the probes
    cannot tell them apart. ``lines`` is the message, ``hole`` the hole that is not right: empty
    if all are, or if the file did not run.
    """

    lesson: str
    outcome: Outcome
    lines: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    hole: str = ""
    printed: str = ""
    """The beginning of the file's prints."""
