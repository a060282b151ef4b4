"""The pace of a run with the option ``minutes``, which makes as many updates as time allows.

The learning rate is a function of the *share* of the schedule that is done, from 0 to 1. After each
update the run estimates, from its recent speed, how many updates still fit. The run divides the
remaining share evenly among these updates. On a machine that becomes slower the share then grows
faster. Share and rate never jump, and the schedule ends when the time ends.

Each checkpoint holds the plan. A killed run goes on from the plan and measures the speed anew. The
time of a process counts up to its last checkpoint; the time between two processes does not count.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from glassformer.support.progress import duration
from glassformer.training.checkpoint import RunState
from glassformer.training.pace import Schedule, SteadyPace, shortened
from glassformer.training.setup.options import LengthOptions
from glassformer.training.time_limit import Deadline

__all__ = ["Pace", "Plan", "TimedPace"]

_PREPARING = 2  # first updates of a process; the speed ignores them, because they prepare kernels
_RECENT = 0.02  # share of the time over which the run measures the speed
_SHAPED = 0.02  # share of the schedule after which the curve is settled
_FINEST = 100  # least updates of a curve; the last of fewer updates would have a high rate
_ENDED = 0.95  # until this share of the schedule, a run continues even if the time is up
_LAST = 0.01  # share of the time for the last fall of the rate, if the time is up too early
_FIRST_VALIDATION = 0.1  # share of the schedule; an earlier model hardly writes
_VALIDATING = 0.08  # greatest share of the time for all validations
_LONGEST_VALIDATION = 0.03  # greatest share of the time for one validation
_SCORING = 0.05  # share of the time that the run keeps for scoring, before it measures
_MOST_SCORING = 0.2


@dataclass(frozen=True)
class Plan:
    """The plan of a run of ``minutes`` after ``update``, with length, schedule and spent seconds.

    >>> Plan(minutes=4.0, updates=30, curve=30, update=10, share=0.5).share_at(20)
    0.75
    """

    minutes: float
    updates: int  # of the whole run
    curve: int  # updates of the steady run with equal learning rates
    update: int = 0
    share: float = 0.0  # the finished share of the schedule
    seconds: float = 0.0  # spent seconds of the minutes
    validated: float = 0.0  # the share at the last validation
    validation: float = 0.0  # the time of a validation of all pairs, in updates

    def share_at(self, update: int) -> float:
        """The share of the schedule that this plan has finished after ``update``."""
        left = max(1, self.updates - self.update)
        return min(1.0, self.share + (1 - self.share) * (update - self.update) / left)

    def extended(self, minutes: float, most: int) -> "Plan":
        """The plan of a longer run at the current place, whose rate rises and falls again."""
        ratio = self.minutes / minutes
        return replace(
            self,
            minutes=minutes,
            updates=most,
            curve=round(self.curve / ratio),
            share=self.share * ratio,
            validated=self.validated * ratio,
        )


class TimedPace:
    """The pace of a run with ``length.minutes``; ``state.plan`` holds the current plan.

    - ``schedule`` has the most updates that help, and is the plan before any measurement.
    - ``scoring`` is the time after the last validation, as a number of validations.
    - ``clock`` gives the seconds that this process has spent on the run.
    """

    def __init__(
        self,
        length: LengthOptions,
        state: RunState,
        schedule: Schedule,
        *,
        scoring: float,
        clock: Callable[[], float],
    ) -> None:
        minutes = length.minutes or 0.0
        self._validations, self._state = length.validations, state
        self._schedule, self._most, self._scoring = schedule, schedule.updates, scoring
        self._total, self._clock = 60 * minutes, clock
        first = Plan(minutes, self._most, self._most)
        self.plan = Plan(**state.plan) if state.plan else first
        self.extended = self.plan.minutes < minutes
        if self.extended:
            self.plan = self.plan.extended(minutes, self._most)
        self._before = self.plan.seconds
        self._reading, self._last = clock(), self.spent()
        self._speed, self._measured = 0.0, 0  # updates a second; updates of this process

    @property
    def updates(self) -> int:
        return self.plan.updates

    def spent(self) -> float:
        """The spent seconds; those of an earlier process count up to its last checkpoint."""
        return self._before + self._clock()

    def deadline(self) -> Deadline:
        return Deadline(self._total - self.spent(), self._clock)

    def summary(self) -> str:
        """A line about the time that the run took."""
        note = f"minutes: {duration(self.spent())} of {duration(self._total)}"
        if self.updates >= self._most:
            return f"{note}, because more than {self._most:,} updates would not help"
        return note

    def minutes_for(self, updates: int) -> int:
        """The minutes that ``updates`` updates take, at the speed of the updates so far."""
        each = self._state.seconds / max(1, self._state.update)  # seconds, validations included
        return math.ceil((self._reading + updates * each / (1 - _MOST_SCORING)) / 60)

    def share(self, update: int) -> float:
        return self.plan.share_at(update)

    def rate(self, update: int) -> float:
        """The learning rate at the share of the schedule where ``update`` is."""
        curve, full = self.plan.curve, self._schedule
        if full.own:
            return full.rate(update)
        warmup, factor = shortened(full.warmup, full.factor, updates=curve)
        schedule = replace(full, updates=curve, warmup=warmup, factor=factor)
        return schedule.rate(max(1.0, self.plan.share_at(update) * curve))

    def passed(self, update: int) -> None:
        """Note the end of ``update``, and plan the rest of the run anew."""
        now = self.spent()
        self._measure(now - self._last)
        self._last = now
        before, share = self.plan, self.plan.share_at(update)
        updates = before.updates
        if update < updates:
            more = int(max(0.0, self._training_left(now)) * self._speed)
            least = max(1, int(_LAST * self._total * self._speed)) if share < _ENDED else 0
            updates = min(self._most, update + max(more, least))
        curve = max(_FINEST, updates) if share < _SHAPED else before.curve
        self._put_in_force(
            replace(before, update=update, updates=updates, curve=curve, share=share, seconds=now)
        )

    def validation_due(self, update: int) -> bool:
        """Whether to validate after ``update``, because the last validation is long enough ago."""
        plan, share = self.plan, self.plan.share_at(update)
        left, longest = self._training_left(self._last), self._validation_seconds()
        if longest < 1 / self._speed:  # translations of a few pairs take as long as an update
            return False
        seconds = min(plan.validation / self._speed, longest)
        gap = max(1 / self._validations, seconds / _VALIDATING * (1 - share) / left)
        following = plan.validated + (gap if plan.validated else max(gap, _FIRST_VALIDATION))
        return following <= share < 1 - gap / 2

    def validation_deadline(self) -> Deadline:
        return Deadline(self._validation_seconds(), self._clock)

    def _validation_seconds(self) -> float:
        """The greatest time, in seconds, of a validation after the current update."""
        if self.plan.update == self.updates:
            return 1.5 * self.deadline().left / (1 + self._scoring)
        return min(_LONGEST_VALIDATION * self._total, self._training_left(self._last) / 4)

    def validated(self, portion: float) -> None:
        """Note the end of a validation, which translated a ``portion`` of the pairs."""
        now = self.spent()
        updates = (now - self._last) * self._speed / portion
        self._last = now
        share = self.plan.share
        self._put_in_force(replace(self.plan, validated=share, validation=updates, seconds=now))

    def _training_left(self, now: float) -> float:
        """The seconds left for updates, without the time of the last validation and the scores."""
        end = _SCORING * self._total
        if self.plan.validated:
            end = self.plan.validation / self._speed * (1 + self._scoring)
        return self._total - now - min(end, _MOST_SCORING * self._total)

    def _measure(self, seconds: float) -> None:
        """Note the seconds of an update, and measure the speed over the last share of the time."""
        self._measured += 1
        new = 1 - math.exp(-seconds / (_RECENT * self._total))
        if self._measured <= _PREPARING:
            new = 1.0
        self._speed += new * (1 / max(seconds, 1e-9) - self._speed)

    def _put_in_force(self, plan: Plan) -> None:
        self.plan = plan
        self._state.plan = asdict(plan)


Pace = SteadyPace | TimedPace
"""The length of a run, its learning rates, and the updates to validate after."""
