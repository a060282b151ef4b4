"""The option ``minutes``: as many updates as the time allows.

The learning rate is a function of the *share* of the schedule that is done, from 0 to 1. After each
update the run counts the updates that still fit, at the speed of the last ones. It divides the
remaining share evenly among them. On a machine that becomes slower the share then grows faster. It
never jumps, so neither does the rate, and the rate comes to its end with the time.

Each checkpoint holds the plan. A run that was killed goes on from it and measures its speed anew.
The time of each process counts up to its last checkpoint; the time between two processes does not.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from glassformer.support.progress import duration
from glassformer.training.checkpoint import RunState
from glassformer.training.schedule import Schedule, SteadyPace, shortened
from glassformer.training.setup.options import LengthOptions
from glassformer.training.time_limit import Deadline

__all__ = ["Pace", "Plan", "TimedPace"]

_PREPARING = 2  # updates of a process that do not count: they prepare memory and kernels
_RECENT = 0.02  # share of the time whose updates give the speed
_SHAPED = 0.02  # share of the schedule after which its curve is settled
_FINEST = 100  # updates of a curve: with fewer, the last one would still have a high rate
_ENDED = 0.95  # share of the schedule that every run reaches
_LAST = 0.01  # share of the time for the last fall of the rate, if the time is up too early
_FIRST_VALIDATION = 0.1  # share of the schedule: an earlier model hardly writes
_VALIDATING = 0.08  # share of the time that may go into validations
_LONGEST_VALIDATION = 0.03  # share of the time that one of them may take
_SCORING = 0.05  # share of the time that is kept for the end before the first validation
_MOST_SCORING = 0.2


@dataclass(frozen=True)
class Plan:
    """The plan of a run of ``minutes`` after ``update``: its length, schedule, and seconds spent.

    >>> Plan(minutes=4.0, updates=30, curve=30, update=10, share=0.5).share_at(20)
    0.75
    """

    minutes: float
    updates: int  # of the whole run
    curve: int  # updates of the steady run that has these learning rates
    update: int = 0
    share: float = 0.0  # of the schedule that is done
    seconds: float = 0.0  # of the person's time that were spent
    validated: float = 0.0  # the share at the last validation
    validation: float = 0.0  # the time of a validation of all pairs, in updates

    def share_at(self, update: int) -> float:
        """The share of the schedule that is done after ``update``, by this plan."""
        left = max(1, self.updates - self.update)
        return min(1.0, self.share + (1 - self.share) * (update - self.update) / left)

    def extended(self, minutes: float, most: int) -> "Plan":
        """The plan of a longer run at the same place: the rate rises again, and falls anew."""
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
    """The plans of a run that has ``length.minutes``, one after the other, in ``state.plan``.

    - ``schedule``: of the most updates that help, the plan before any measurement.
    - ``scoring``: the time after the last validation, as a number of validations.
    - ``clock``: seconds that this process has spent on the run.
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
        """Seconds of the person's time; of an earlier process, those up to its last checkpoint."""
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
        """The minutes that this many updates take, at the speed of the updates so far."""
        each = self._state.seconds / max(1, self._state.update)  # with the validations
        return math.ceil((self._reading + updates * each / (1 - _MOST_SCORING)) / 60)

    def share(self, update: int) -> float:
        return self.plan.share_at(update)

    def rate(self, update: int) -> float:
        """The learning rate at the share of the schedule where ``update`` is."""
        curve, full = self.plan.curve, self._schedule
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
        """Whether the last validation is long ago: validations come as often as the time allows."""
        plan, share = self.plan, self.plan.share_at(update)
        left, longest = self._training_left(self._last), self._validation_seconds()
        if longest < 1 / self._speed:  # even a few pairs take as long as an update
            return False
        seconds = min(plan.validation / self._speed, longest)
        gap = max(1 / self._validations, seconds / _VALIDATING * (1 - share) / left)
        following = plan.validated + (gap if plan.validated else max(gap, _FIRST_VALIDATION))
        return following <= share < 1 - gap / 2

    def validation_deadline(self) -> Deadline:
        return Deadline(self._validation_seconds(), self._clock)

    def _validation_seconds(self) -> float:
        """The time that a validation may take after this update."""
        if self.plan.update == self.updates:
            return 1.5 * self.deadline().left / (1 + self._scoring)
        return min(_LONGEST_VALIDATION * self._total, self._training_left(self._last) / 4)

    def validated(self, portion: float) -> None:
        """Note the end of a validation, which translated this portion of the pairs."""
        now = self.spent()
        updates = (now - self._last) * self._speed / portion
        self._last = now
        share = self.plan.share
        self._put_in_force(replace(self.plan, validated=share, validation=updates, seconds=now))

    def _training_left(self, now: float) -> float:
        """Seconds for updates: without the time for the last validation and the scores."""
        end = _SCORING * self._total
        if self.plan.validated:
            end = self.plan.validation / self._speed * (1 + self._scoring)
        return self._total - now - min(end, _MOST_SCORING * self._total)

    def _measure(self, seconds: float) -> None:
        """Note the seconds of an update: the speed is that of the last share of the time."""
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
