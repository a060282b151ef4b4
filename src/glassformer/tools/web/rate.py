"""Limits the requests that a client can send in a minute."""

import math
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from glassformer.tools.web.security import RefusedError

__all__ = ["RequestRate", "network_of"]

_MINUTE = 60.0
_MOST_CLIENTS = 10_000  # beyond this number, the server forgets clients with a full bucket


def network_of(host: str) -> str:
    """An address, or the /64 of an IPv6 address, as a subscriber has a whole /64.

    >>> network_of("192.0.2.1"), network_of("2001:db8::1:2:3:4"), network_of("::ffff:192.0.2.1")
    ('192.0.2.1', '2001:db8::', '192.0.2.1')
    """
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or IPv6Address(address.packed[:8] + bytes(8))
    return str(address)


class RequestRate:
    """Gives each client a bucket of `per_minute` requests, which fills up within a minute.

    `per_minute` 0 means no limit. `clock` gives seconds.

    >>> rate = RequestRate(2, clock=lambda: 0.0)
    >>> rate.count("a"), rate.count("a"), rate.count("b")
    (None, None, None)
    >>> rate.count("a")
    Traceback (most recent call last):
    glassformer.tools.web.security.RefusedError: more than 2 requests a minute: try again in 30 s
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._full: dict[str, float] = {}  # the time at which each client's bucket is full again

    def count(self, client: str) -> None:
        """Count a request. Raises RefusedError 429 if the client has no request left."""
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
                reason="rate",
                headers={"Retry-After": str(seconds)},
            )
        self._full[client] = full
        if len(self._full) > _MOST_CLIENTS:
            self._full = {name: when for name, when in self._full.items() if when > now}

    def charge(self, client: str, requests: int) -> None:
        """Take further requests from the client's bucket, at most a minute's.

        A later request of the client then waits longer.
        """
        if self._per_minute:
            self._full[client] += min(requests / self._per_minute, 1) * _MINUTE
