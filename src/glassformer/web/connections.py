"""Bounds of a server's connections: their number, and the time for a request's head.

Uvicorn waits for a head without end: a few hundred silent clients would keep all others out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BoundedConnection", "Connections"]

_LOG_PAUSE = 60.0  # seconds without a further line about closed connections


@dataclass
class Connections:
    """The bounds that the connections of a server share.

    `most` and `most_of_address` count open connections. `head_seconds` is the time for the head of
    a request. The connections of `proxies`, which are addresses, have no bound but `most`.
    """

    most: int = 512
    most_of_address: int = 256
    head_seconds: float = 10.0
    proxies: Collection[str] = ()
    quiet_until: float = 0.0


class BoundedConnection(H11Protocol):
    """Uvicorn's connection, which the server closes beyond the `bounds` of a subclass.

    The time for a head begins with the connection, and anew with the end of each answer. A head
    that comes byte by byte has no more time.
    """

    bounds: Connections
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, or close a connection beyond the bounds."""
        super().connection_made(transport)
        others = [other for other in self.connections if isinstance(other, H11Protocol)]
        address = self.client and self.client[0]
        same = sum(other.client is not None and other.client[0] == address for other in others)
        known = address is None or address in self.bounds.proxies
        if len(others) > self.bounds.most or (same > self.bounds.most_of_address and not known):
            self.connections.discard(self)  # at once: it must not count against the next client
            self._log_closed()
            transport.abort()
        else:
            self._await_head()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        if self._head_timer:
            self._head_timer.cancel()

    def _await_head(self) -> None:
        if self._head_timer:
            self._head_timer.cancel()
        self._head_timer = self.loop.call_later(self.bounds.head_seconds, self._close_without_head)

    def _close_without_head(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.timeout_keep_alive_handler()

    def _log_closed(self) -> None:
        now, bounds = self.loop.time(), self.bounds
        if now >= bounds.quiet_until:
            bounds.quiet_until = now + _LOG_PAUSE
            logging.getLogger("uvicorn.error").error(
                "more than %d connections of a client or %d of all: closed the newest",
                bounds.most_of_address,
                bounds.most,
            )
