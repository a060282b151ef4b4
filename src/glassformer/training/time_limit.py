"""As much of a work as fits into a time: a slow or crowded machine translates fewer pairs."""

import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

__all__ = ["in_time"]

T = TypeVar("T")
R = TypeVar("R")

_FIRST = 16  # items of the first chunk, and the fewest of a later one
_CHUNK = 0.125  # share of the time that a chunk may take: the machine may become slower meanwhile


def in_time(
    work: Callable[[list[T]], Iterable[R]],
    items: Sequence[T],
    *,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> dict[int, R]:
    """The results of ``work`` by the places of their items: of all items, or as many as fit.

    ``work`` takes a chunk of items and returns a result for each. The chunks come in a mixed order,
    always the same, so that some of the items stand for all. A chunk begins only if it fits into
    the rest of the time, at the speed of the last one. The first chunk always begins. Without a
    limit all items are one chunk.

    >>> in_time(lambda words: [word.upper() for word in words], ["a", "b"])
    {0: 'A', 1: 'B'}
    """
    order = list(range(len(items)))
    chunk = len(order)
    if seconds < math.inf:
        random.Random(0).shuffle(order)
        chunk = _FIRST
    results: dict[int, R] = {}
    now = clock()
    end = now + seconds
    while places := order[len(results) : len(results) + chunk]:
        results.update(zip(places, work([items[place] for place in places]), strict=True))
        began, now = now, clock()
        each = max(now - began, 1e-9) / len(places)
        fitting = min((end - now) / each, float(len(order)))
        chunk = int(min(fitting, max(_FIRST, _CHUNK * seconds / each)))
        if fitting < min(_FIRST, len(order) - len(results)):
            break
    return dict(sorted(results.items()))
