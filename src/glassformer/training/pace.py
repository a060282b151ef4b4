"""The pace of a run with a fixed number of updates: their learning rates, and the validations."""

import math
from dataclasses import dataclass

from glassformer.training.schedule import NoamSchedule, noam_schedule
from glassformer.training.setup.options import Decay
from glassformer.training.time_limit import Deadline

__all__ = ["Schedule", "SteadyPace", "shortened"]

_LONGEST_WARMUP = 0.2  # of all updates


@dataclass(frozen=True)
class Schedule:
    """:func:`noam_schedule` with a straight fall to zero at the end, or a schedule of one's own.

    Departure from the paper: the rate falls to zero over the last share ``anneal`` of ``updates``.
    A run of known length ends better with small last steps. ``anneal=0`` gives the paper's
    schedule. With ``decay="constant"`` the rate is constant between the warm-up and the last share
    of the updates. Another ``form`` than :func:`noam_schedule` is the rate itself: ``anneal`` and
    ``decay`` do not change it.

    >>> Schedule(updates=100, d_model=512, warmup=10, anneal=0.5).rate(100) < 1e-4
    True
    """

    updates: int
    d_model: int
    warmup: int = 4000
    factor: float = 1.0
    anneal: float = 0.0
    decay: Decay = "inverse-root"
    form: NoamSchedule = noam_schedule

    @property
    def own(self) -> bool:
        return self.form is not noam_schedule

    def rate(self, update: int | float) -> float:
        """The learning rate of an update; updates count from 1."""
        if self.own:
            rate = self.form(update, d_model=self.d_model, warmup=self.warmup, factor=self.factor)
            if not 0 <= rate < math.inf:
                raise ValueError(f"rate {rate} of update {update:,}: expected a number from 0")
            return rate
        highest = min(update, self.warmup) if self.decay == "constant" else update
        rate = self.form(highest, d_model=self.d_model, warmup=self.warmup, factor=self.factor)
        left = (self.updates - update + 1) / max(self.anneal * self.updates, 1.0)
        return rate * min(1.0, left)


def shortened(warmup: int, factor: float, *, updates: int | float) -> tuple[int, float]:
    """Warm-up and factor for a run of ``updates``; the warm-up is at most a fifth of ``updates``.

    A shorter warm-up must not raise the highest rate, ``factor / sqrt(d_model * warmup)``.

    >>> shortened(800, 1.2, updates=20_000), shortened(800, 1.2, updates=1_000)
    ((800, 1.2), (200, 0.6))
    """
    short = max(1, min(warmup, round(_LONGEST_WARMUP * updates)))
    return short, factor * (short / warmup) ** 0.5


@dataclass(frozen=True)
class SteadyPace:
    """A fixed number of updates, with validations at equal distances."""

    schedule: Schedule
    validations: int
    extended: bool = False  # this call makes the run longer

    @property
    def updates(self) -> int:
        """The updates of the whole run."""
        return self.schedule.updates

    def rate(self, update: int) -> float:
        """The learning rate of an update; updates count from 1."""
        return self.schedule.rate(update)

    def share(self, update: int) -> float:
        """The share of the run up to and including this update, from 0 to 1."""
        return update / self.updates

    def validation_due(self, update: int) -> bool:
        """Whether to validate after ``update``. The loop always validates after the last update."""
        return update % max(1, self.updates // self.validations) == 0

    def passed(self, update: int) -> None:
        """Do nothing after an update, because a fixed number of updates needs no record."""

    def validated(self, portion: float) -> None:
        """Do nothing after a validation, because a fixed number of updates needs no record."""

    def validation_deadline(self) -> Deadline:
        """The deadline of a validation that begins now."""
        return Deadline()

    def deadline(self) -> Deadline:
        """The deadline of the whole run."""
        return Deadline()
