"""The time that a run still takes, by the measured times of its updates and validations."""

import time
from collections import deque
from collections.abc import Iterator
from statistics import median

from glassformer.support.progress import duration
from glassformer.training.time_budget import Pace

__all__ = ["Forecast"]

_RECENT = 50  # updates
_FIRST_UPDATES, _FIRST_SECONDS = 3, 3.0  # measured before the first line
_WRONG, _SLACK = 0.2, 5.0  # share and seconds by which a forecast is wrong and is made anew
_TAKEN = 0.8  # share of the cores' time; with less, other programs have the rest


class Forecast:
    """Forecasts the end of a run with ``validations`` validations.

    - ``scoring`` is the time of the work after the last validation, as a number of validations.
    - ``cores`` is the number of cores whose threads wait awake for each other, or 0.
    """

    def __init__(self, pace: Pace, validations: int, *, scoring: float, cores: int = 0) -> None:
        self._pace, self._scoring, self._cores = pace, scoring, cores
        self._every = max(1, pace.updates // validations)
        self._updates = deque[tuple[float, float]](maxlen=_RECENT)  # seconds, of all cores too
        self._validation = 0.0
        self._end: float | None = None  # of the last forecast

    def updated(self, seconds: float, computed: float) -> None:
        """Note the seconds of an update, and the seconds of all cores for this process."""
        self._updates.append((seconds, computed))

    def validated(self, seconds: float) -> None:
        """Note the seconds of a validation."""
        self._validation = seconds

    def left(self, update: int) -> float:
        """The seconds that the run takes after ``update``, at most the rest of its minutes."""
        updates = self._pace.updates
        each = median([seconds for seconds, _ in self._updates] or [0.0])
        validations = -(-updates // self._every) - update // self._every
        left = (updates - update) * each + (validations + self._scoring) * self._validation
        return min(left, self._pace.deadline().left)

    def lines(self, update: int) -> Iterator[str]:
        """New lines about the time left, and about other programs that slow the run."""
        seconds, computed = map(sum, zip(*self._updates, strict=True))
        if seconds > _FIRST_SECONDS and computed < _TAKEN * self._cores * seconds:
            self._cores = 0  # once
            yield (
                "another program takes time of these cores, and this training's threads wait for"
                " each other: threads=1 is quicker beside it"
            )
        if len(self._updates) < _FIRST_UPDATES or seconds < _FIRST_SECONDS:
            return
        left, now = self.left(update), time.monotonic()
        before = None if self._end is None else self._end - now
        if before is not None and abs(left - before) < _WRONG * max(left, before) + _SLACK:
            return
        self._end = now + left
        until = time.strftime("%H:%M", time.localtime(time.time() + left))
        yield f"{'' if before is None else 'now '}about {duration(left)} left, until {until}"
