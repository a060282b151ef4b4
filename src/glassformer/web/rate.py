"""How many requests a client may send in a minute."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from glassformer.web.security import RefusedError

__all__ = ["RequestRate"]

_MINUTE = 60.0
_MOST_CLIENTS = 10_000  # of more, it forgets the clients with a full bucket


class RequestRate:
    """Each client has a bucket of `per_minute` requests, which fills up evenly within a minute.

    `per_minute` 0: no limit. `clock` gives seconds.

    >>> rate = RequestRate(2, clock=lambda: 0.0)
    >>> rate.count("a"), rate.count("a"), rate.count("b")
    (None, None, None)
    >>> rate.count("a")
    Traceback (most recent call last):
    glassformer.web.security.RefusedError: more than 2 requests a minute: try again in 30 s
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._full: dict[str, float] = {}  # when the bucket of each client is full again

    def count(self, client: str) -> None:
        """Count a request. Raises RefusedError 429 if the client has none left."""
        if not self._per_minute:
            return
        now = self._clock()
        full = max(self._full.get(client, now), now) + _MINUTE / self._per_minute
        wait = full - now - _MINUTE
        if wait > 1e-6:
            seconds = math.ceil(wait)
            raise RefusedError(
                429,
                f"more than {self._per_minute} requests a minute: try again in {seconds} s",
                headers={"Retry-After": str(seconds)},
            )
        self._full[client] = full
        if len(self._full) > _MOST_CLIENTS:
            self._full = {name: when for name, when in self._full.items() if when > now}
