"""A deadline, and work that ends before a deadline, so a slow machine translates fewer pairs."""

import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

__all__ = ["Deadline", "in_time"]

T = TypeVar("T")
R = TypeVar("R")

_FIRST = 16  # items of the first chunk, and the fewest of a later one
_CHUNK = 0.125  # greatest share of the time for a chunk, because the machine may become slower


class Deadline:
    """The time at which a work ends. Without ``seconds``, the deadline never comes.

    >>> Deadline().left
    inf
    """

    def __init__(
        self, seconds: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock, self._end = clock, clock() + seconds

    @property
    def left(self) -> float:
        """The seconds until the deadline."""
        return self._end - self.clock()

    def share(self, portion: float) -> "Deadline":
        """The deadline of a part of the work, which takes at most ``portion`` of the time left."""
        return Deadline(portion * self.left, self.clock)


def in_time(
    work: Callable[[list[T]], Iterable[R]],
    items: Sequence[T],
    deadline: Deadline | None = None,
) -> dict[int, R]:
    """The results of ``work``, by the places of the items, for as many items as fit.

    ``work`` takes a chunk of items and returns a result for each item. The chunks come in a fixed
    mixed order, so that the first chunks stand for all items. A later chunk begins only if, at the
    speed of the last chunk, it fits into the rest of the time. Without a deadline, all items are
    one chunk.

    >>> in_time(lambda words: [word.upper() for word in words], ["a", "b"])
    {0: 'A', 1: 'B'}
    """
    order = list(range(len(items)))
    chunk = len(order)
    deadline = deadline or Deadline()
    seconds = deadline.left
    if seconds < math.inf:
        random.Random(0).shuffle(order)
        chunk = _FIRST
    results: dict[int, R] = {}
    now = deadline.clock()
    while places := order[len(results) : len(results) + chunk]:
        results.update(zip(places, work([items[place] for place in places]), strict=True))
        began, now = now, deadline.clock()
        each = max(now - began, 1e-9) / len(places)
        fitting = min(deadline.left / each, float(len(order)))
        chunk = int(min(fitting, max(_FIRST, _CHUNK * seconds / each)))
        if fitting < min(_FIRST, len(order) - len(results)):
            break
    return dict(sorted(results.items()))
