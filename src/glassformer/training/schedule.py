"""The learning rate over time (section 5.3, equation 3), and the length of a run."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from glassformer.training.setup.options import Decay, TrainConfig

__all__ = ["Pace", "SteadyPace", "learning_rate", "noam_schedule", "shortened"]

_LONGEST_WARMUP = 0.2  # of all updates


def noam_schedule(
    update: int | float, *, d_model: int, warmup: int = 4000, factor: float = 1.0
) -> float:
    r"""Equation 3: :math:`d_{model}^{-0.5}\min(u^{-0.5}, u\,w^{-1.5})`, times ``factor``.

    It rises for ``warmup`` updates, then falls with the square root. Updates count from 1.

    >>> f"{noam_schedule(4000, d_model=512):.6f}"
    '0.000699'
    """
    if update < 1 or warmup < 1:
        raise ValueError(f"update and warmup count from 1, got {update} and {warmup}")
    return factor * d_model**-0.5 * min(update**-0.5, update * warmup**-1.5)


def learning_rate(
    update: int | float,
    *,
    updates: int,
    d_model: int,
    warmup: int,
    factor: float,
    anneal: float,
    decay: Decay = "inverse-root",
) -> float:
    """:func:`noam_schedule`, brought down to zero in a straight line over the last share.

    Departure from the paper: the rate goes to zero over the last share ``anneal`` of ``updates``,
    because a run of a known length ends better if its last steps are small. With ``anneal=0`` it is
    the paper's. With ``decay="none"`` the rate keeps its height between warm-up and that share.

    >>> learning_rate(100, updates=100, d_model=512, warmup=10, factor=1.0, anneal=0.5) < 1e-4
    True
    """
    highest = min(update, warmup) if decay == "none" else update
    rate = noam_schedule(highest, d_model=d_model, warmup=warmup, factor=factor)
    left = (updates - update + 1) / max(anneal * updates, 1.0)
    return rate * min(1.0, left)


def shortened(warmup: int, factor: float, *, updates: int | float) -> tuple[int, float]:
    """Warm-up and factor for a run of ``updates``: the warm-up is at most a fifth of them.

    The highest rate is ``factor / sqrt(d_model * warmup)``: a shorter warm-up must not raise it.

    >>> shortened(800, 1.2, updates=20_000), shortened(800, 1.2, updates=1_000)
    ((800, 1.2), (200, 0.6))
    """
    short = max(1, min(warmup, round(_LONGEST_WARMUP * updates)))
    return short, factor * (short / warmup) ** 0.5


@runtime_checkable
class Pace(Protocol):
    """The length of a run, the learning rate of each update, and the updates to validate after."""

    @property
    def updates(self) -> int:
        """The updates of the whole run, as planned now."""

    def rate(self, update: int, /) -> float:
        """The learning rate of an update; updates count from 1."""

    def share(self, update: int, /) -> float:
        """The share of the run up to and including this update, from 0 to 1."""

    def validation_due(self, update: int, /) -> bool:
        """Whether to validate after this update. The loop always validates after the last."""

    def passed(self, update: int, /) -> None:
        """Note the end of an update."""

    def validated(self, portion: float, /) -> None:
        """Note the end of a validation, which translated this portion of the pairs."""

    def validation_seconds(self) -> float:
        """The time that a validation may take now."""

    def seconds_left(self) -> float:
        """The time for all that is left of the run."""


@dataclass(frozen=True)
class SteadyPace:
    """A fixed number of updates, with validations at equal distances."""

    config: TrainConfig
    updates: int
    d_model: int

    def rate(self, update: int) -> float:
        return learning_rate(
            update,
            updates=self.updates,
            d_model=self.d_model,
            warmup=self.config.warmup or 4000,
            factor=self.config.rate_factor or 1.0,
            anneal=self.config.anneal,
            decay=self.config.decay or "inverse-root",
        )

    def share(self, update: int) -> float:
        return update / self.updates

    def validation_due(self, update: int) -> bool:
        return update % max(1, self.updates // self.config.validations) == 0

    def passed(self, update: int) -> None:
        """A fixed length needs no notes."""

    def validated(self, portion: float) -> None:
        """A fixed length needs no notes."""

    def validation_seconds(self) -> float:
        return math.inf

    def seconds_left(self) -> float:
        return math.inf
