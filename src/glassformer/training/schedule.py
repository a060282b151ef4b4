"""The learning rate over time (section 5.3, equation 3), and how far a run goes."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from glassformer.training.setup.options import TrainConfig

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
) -> float:
    """:func:`noam_schedule`, brought down to zero in a straight line over the last share.

    Departure from the paper: over the last ``anneal`` of all ``updates`` the rate goes to zero,
    because a run of a known length ends better when its last steps are small. With ``anneal=0``
    it is the paper's.

    >>> learning_rate(100, updates=100, d_model=512, warmup=10, factor=1.0, anneal=0.5) < 1e-4
    True
    """
    rate = noam_schedule(update, d_model=d_model, warmup=warmup, factor=factor)
    left = (updates - update + 1) / max(anneal * updates, 1.0)
    return rate * min(1.0, left)


def shortened(warmup: int, factor: float, *, updates: int | float) -> tuple[int, float]:
    """A warm-up for a run of so many ``updates``, a fifth of them at most, and its factor.

    The highest rate is ``factor / sqrt(d_model * warmup)``: a shorter warm-up must not raise it.

    >>> shortened(800, 1.2, updates=20_000), shortened(800, 1.2, updates=1_000)
    ((800, 1.2), (200, 0.6))
    """
    short = max(1, min(warmup, round(_LONGEST_WARMUP * updates)))
    return short, factor * (short / warmup) ** 0.5


@runtime_checkable
class Pace(Protocol):
    """How far a run goes, what the rate of each update is, and which ones are validated."""

    @property
    def updates(self) -> int:
        """Of the whole run, by what is known."""

    def rate(self, update: int, /) -> float:
        """The learning rate of an update; they count from 1."""

    def share(self, update: int, /) -> float:
        """The share of the run that is done with this update, from 0 to 1."""

    def validation_due(self, update: int, /) -> bool:
        """Whether to validate after this update; after the last one in any case."""

    def passed(self, update: int, /) -> None:
        """Be told that an update is done."""


@dataclass(frozen=True)
class SteadyPace:
    """As many updates as said, validated at equal distances."""

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
        )

    def share(self, update: int) -> float:
        return update / self.updates

    def validation_due(self, update: int) -> bool:
        return update % max(1, self.updates // self.config.validations) == 0

    def passed(self, update: int) -> None:
        """Nothing follows from it."""
