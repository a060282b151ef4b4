"""``train --minutes``: as many updates as the given time allows.

The learning rate is a function of the *share* of the run that is done, from 0 to 1. A plan says how
many updates the run has, and divides the remaining share evenly among the remaining updates. The
run measures the seconds of updates and validations, and plans anew from them. On a machine that
becomes slower the share then grows faster. The share never jumps, so neither does the rate, and
the rate reaches its end with the time. Plans at validations alone would not hold the time: on a
machine that slows down to a tenth halfway, such a run takes 1.5 times as long as it may.

Each plan is a line of ``pace.jsonl`` before it takes effect. A run that was killed reads the lines
and repeats its decisions to the bit; then it measures again. The time of its processes counts, the
time between them does not.
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from glassformer.errors import InputError
from glassformer.files import write_atomically
from glassformer.training.reporting import duration
from glassformer.training.schedule import learning_rate, shortened
from glassformer.training.setup.options import TrainConfig

__all__ = ["PACE_FILE", "Plan", "TimedPace"]

PACE_FILE = "pace.jsonl"

_WARM = 3  # first updates of a process, not measured: they prepare memory and kernels
_MEASURED = 20  # updates of a measurement
_OFTEN = 0.02  # share of the time after which the plan is made anew
_FIRST_VALIDATION = 0.1  # share of the run: earlier translations are endless, which takes long
_VALIDATING = 0.08  # share of the time that may go into validations
_MOST_SCORING = 0.3  # share of the time that is kept for the end: early measurements are too long


@dataclass(frozen=True)
class Plan:
    """The decision after ``update``, and the measurements behind it.

    >>> Plan(update=10, updates=30, share=0.5).share_at(20)
    0.75
    """

    update: int
    updates: int  # of the whole run
    share: float  # of the run that is done at ``update``
    validated: float = 0.0  # the share at the last validation
    validate_at: int = 0  # after which update the next one is due; 0: only at the end
    update_seconds: float = 0.0
    validation_seconds: float = 0.0
    seconds: float = 0.0  # of the person's time that were spent

    def share_at(self, update: int) -> float:
        """The share that is done with this ``update``, by this plan."""
        left = max(1, self.updates - self.update)
        return min(1.0, self.share + (1 - self.share) * (update - self.update) / left)


class TimedPace:
    """The plans of a run that has ``config.minutes``, one after the other.

    - ``most``: the updates beyond which more would not help; the plan before any measurement.
    - ``d_model``: of the model, for its rates.
    - ``begun``: the update that the run goes on from.
    - ``scoring``: the time after the last validation, as a number of validations.
    - ``clock``: seconds that this process has spent on the run.
    """

    def __init__(
        self,
        config: TrainConfig,
        *,
        most: int,
        d_model: int,
        begun: int,
        scoring: float,
        clock: Callable[[], float],
    ) -> None:
        self._config, self._d_model = config, d_model
        self._most, self._scoring = most, scoring
        self._total = 60 * (config.minutes or 0.0)
        self._path = config.run / PACE_FILE
        self._written = _read(self._path)
        self._taken = [plan for plan in self._written if plan.update <= begun]
        self._ahead = self._written[len(self._taken) :]  # decided, and then lost by a kill
        self._before = self._written[-1].seconds if self._written else 0.0
        self._clock = clock
        self._meter = _Meter(self.plan.update_seconds, self.plan.validation_seconds)

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self._taken[-1] if self._taken else Plan(0, self._most, 0.0)

    @property
    def measured(self) -> bool:
        """Whether the plan in force comes from a measurement."""
        return bool(self._taken)

    @property
    def updates(self) -> int:
        return self.plan.updates

    @property
    def ended_early(self) -> bool:
        """Whether there was more time than these data want."""
        return self.updates == self._most

    def spent(self) -> float:
        """Seconds of the person's time, those of earlier processes up to their last plan."""
        return self._before + self._clock()

    def summary(self) -> str:
        """A line about the time that the run took."""
        note = f"minutes: {duration(self.spent())} of {duration(self._total)}"
        if self.ended_early:
            return f"{note}, because more than {self.updates:,} updates would not help"
        return note

    def share(self, update: int) -> float:
        return self.plan.share_at(update)

    def validation_due(self, update: int) -> bool:
        return update == self.plan.validate_at

    def rate(self, update: int) -> float:
        """The learning rate at the share of the run where ``update`` is.

        The schedule is that of as many updates as the first measurement came to.
        """
        updates = self._taken[0].updates if self._taken else self._most
        warmup, factor = shortened(
            self._config.warmup or 4000, self._config.rate_factor or 1.0, updates=updates
        )
        return learning_rate(
            max(1.0, self.plan.share_at(update) * updates),
            updates=updates,
            d_model=self._d_model,
            warmup=warmup,
            factor=factor,
            anneal=self._config.anneal,
            decay=self._config.decay,
        )

    def passed(self, update: int) -> None:
        """``update`` is done; the plan may be another from now on."""
        now = self.spent()
        validated = self.plan.validate_at == update - 1 > 0
        self._meter.tick(now, validated=validated)
        if self._ahead:
            if self._ahead[0].update == update:
                self._taken.append(self._ahead.pop(0))
        elif self._undecided(now) or validated:
            self._decide(update, now)
        # The end is kept as well, unless a plan of this update holds it.
        if update == self.updates > self.plan.update and not self._ahead:
            self._put_in_force(replace(self.plan, update=update, share=1.0, seconds=now))

    def _undecided(self, now: float) -> bool:
        since = now - self.plan.seconds
        if self._taken:
            return since >= _OFTEN * self._total
        enough = self._meter.count >= _MEASURED or self._meter.busy >= _OFTEN * self._total
        return self._meter.ready and (enough or since >= 0.5 * self._total)

    def _decide(self, update: int, now: float) -> None:
        """Plan the rest of the time; the plan is on the disk before it takes effect."""
        before, share = self.plan, self.plan.share_at(update)
        self._meter.settle(_OFTEN * self._total / 2)
        each, validation = self._meter.update, self._meter.validation
        end = min(validation * (1 + self._scoring), _MOST_SCORING * self._total)
        left = max(0.0, self._total - now - end)
        validated = before.validated
        if 0 < before.validate_at < update:
            validated = before.share_at(before.validate_at)
        # As often as the option says, or as the time allows.
        gap = 1 / self._config.validations
        if left > 0:
            gap = max(gap, validation / _VALIDATING * (1 - share) / left)
        following = validated + (gap if validated else max(gap, _FIRST_VALIDATION))
        on_the_way = max(0, math.ceil((1 - following) / gap - 1e-6))
        more = max(0.0, left - on_the_way * validation) / max(each, 1e-9)
        updates = int(min(self._most, update + more))
        at = 0
        if share < 1 and following < 1 - gap / 2 and updates > update:
            wait = (following - share) / (1 - share) * (updates - update)
            at = update + max(0, math.ceil(wait))
        if not self._taken:  # the share that this plan would have given from the beginning
            share = update / updates
        self._put_in_force(Plan(update, updates, share, validated, at, each, validation, now))

    def _put_in_force(self, plan: Plan) -> None:
        self._written.append(plan)
        lines = [json.dumps(asdict(written)) + "\n" for written in self._written]
        write_atomically(self._path, "".join(lines).encode())
        self._taken.append(plan)


class _Meter:
    """Seconds of an update and of a validation, from the times at which updates end."""

    def __init__(self, update: float, validation: float) -> None:
        self.update, self.validation = update, validation
        self.busy, self.count = 0.0, 0  # seconds and updates since the last measurement
        self._ends = 0
        self._last = self._interval = 0.0

    @property
    def ready(self) -> bool:
        """Whether an interval between two updates is measured."""
        return self._ends > 1

    def tick(self, now: float, *, validated: bool) -> None:
        """An update has ended; before it there was a validation, or not."""
        self._interval, self._last = now - self._last, now
        self._ends += 1
        if not self.ready:
            return
        if validated:
            self.validation = max(0.0, self._interval - self.update)
        elif self._ends > _WARM:
            self.busy, self.count = self.busy + self._interval, self.count + 1

    def settle(self, enough: float) -> None:
        """Take the mean of the measured updates, if they took ``enough`` seconds or are many."""
        if self.count >= _MEASURED or self.busy >= enough > 0:
            self.update = self.busy / self.count
            self.busy, self.count = 0.0, 0
        elif not self.update:
            self.update = self._interval


def _read(path: Path) -> list[Plan]:
    """The plans of an earlier call."""
    if not path.exists():
        return []
    try:
        return [Plan(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{path}: not the plans of a run ({error}): remove it to plan the rest anew"
        ) from error
