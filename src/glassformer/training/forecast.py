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
_WRONG, _SLACK = 0.1, 5.0  # share and seconds by which a forecast is wrong and is made anew
_RARER = 1.25  # the measured time grows by this factor from a line to the next
_TAKEN = 0.72  # share of the cores' time; with less, other programs have the rest


class Forecast:
    """Forecasts the end of a run at ``update`` that validates after ``every`` updates.

    - ``validation`` is the time of a validation, in updates, until one is measured.
    - ``scoring`` is the time of the work after the last validation, as a number of validations.
    - ``awake`` is the number of cores whose threads wait awake for each other, or 0.
    """

    def __init__(
        self, pace: Pace, update: int, *, every: int, validation: float, scoring: float
    ) -> None:
        self._pace, self._validated, self._every = pace, update, every
        self._expected, self._scoring = validation, scoring
        self._updates = deque[tuple[float, float]](maxlen=_RECENT)  # seconds, cores at work
        self._measured = 0.0  # seconds of updates and validations
        self._validation: float | None = None  # seconds of the last one
        self._end, self._next_line = 0.0, _FIRST_SECONDS  # of the last line; measured seconds
        self.awake = 0

    def updated(self, seconds: float, computed: float) -> None:
        """Note the seconds of an update, and the seconds of all cores for this process."""
        self._updates.append((seconds, computed / max(seconds, 1e-9)))
        self._measured += seconds

    def validated(self, update: int, seconds: float) -> None:
        """Note the seconds of a validation after ``update``."""
        self._validated, self._validation = update, seconds
        self._measured += seconds

    def left(self, update: int) -> float:
        """The seconds that the run takes after ``update``, at most the rest of its minutes."""
        updates = self._pace.updates
        each = median([seconds for seconds, _ in self._updates] or [0.0])
        validation = self._expected * each if self._validation is None else self._validation
        validations = -(-(updates - self._validated) // self._every)
        left = (updates - update) * each + (validations + self._scoring) * validation
        return min(left, self._pace.deadline().left)

    def lines(self, update: int) -> Iterator[str]:
        """New lines about the time left, and about other programs that slow the run."""
        if len(self._updates) < _FIRST_UPDATES or self._measured < _FIRST_SECONDS:
            return
        if median(cores for _, cores in self._updates) < _TAKEN * self.awake:
            self.awake = 0  # once
            yield (
                "this training gets a part of its cores' time; if another program takes the rest,"
                " the run continues more quickly with threads 1"
            )
        left, now = self.left(update), time.monotonic()
        wrong = abs(left - (self._end - now)) > _WRONG * max(left, self._end - now) + _SLACK
        early, ends = self._measured < self._next_line, left < 2 * _SLACK
        if early or ends or not (wrong or not self._end):
            return
        changed = "now " if self._end else ""
        self._end, self._next_line = now + left, _RARER * self._measured
        until = time.strftime("%H:%M", time.localtime(time.time() + left))
        yield f"{changed}about {duration(left)} left, until {until}"
