"""Bounds of a server's connections: their number, and the time for a request's head.

Uvicorn waits for a head without end: a few hundred silent clients would keep all others out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

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

    def exceeded_by(self, address: str, addresses: Collection[str]) -> bool:
        """Whether a connection from `address` is one too many; `addresses` has all, this too.

        >>> bounds = Connections(most=3, most_of_address=1, proxies=["p"])
        >>> bounds.exceeded_by("a", ["a", "b"]), bounds.exceeded_by("p", ["p", "p", "b"])
        (False, False)
        >>> bounds.exceeded_by("a", ["a", "a"]), bounds.exceeded_by("p", ["p"] * 4)
        (True, True)
        """
        of_address = 0 if address in self.proxies else list(addresses).count(address)
        return len(addresses) > self.most or of_address > self.most_of_address


class BoundedConnection(H11Protocol):
    """Uvicorn's connection within bounds: the server closes it if a bound is exceeded.

    The time for a head begins with the connection, and anew with the end of each answer. A head
    that comes byte by byte has no more time.
    """

    def __init__(
        self,
        bounds: Connections,
        *,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._bounds = bounds
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, or close a connection beyond the bounds."""
        super().connection_made(transport)
        known = (other.client for other in self.connections if isinstance(other, H11Protocol))
        addresses = [client[0] for client in known if client]
        if self.client and self._bounds.exceeded_by(self.client[0], addresses):
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
        self._head_timer = self.loop.call_later(self._bounds.head_seconds, self._close_without_head)

    def _close_without_head(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.timeout_keep_alive_handler()

    def _log_closed(self) -> None:
        now = self.loop.time()
        if now >= self._bounds.quiet_until:
            self._bounds.quiet_until = now + _LOG_PAUSE
            logging.getLogger("uvicorn.error").error(
                "too many connections, %d of one client or %d of all: closed the newest",
                self._bounds.most_of_address,
                self._bounds.most,
            )
