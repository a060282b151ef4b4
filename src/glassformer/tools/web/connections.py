"""Bounds of a server's connections: their number, and the time for a head and for an answer.

Uvicorn sets no time for the head of a request or for a client to read an answer. A few hundred
silent clients would keep all others out.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from uvicorn.protocols.http.h11_impl import H11Protocol

from glassformer.tools.web.rate import network_of

__all__ = ["BoundedConnection", "Connections"]

_LOG_PAUSE = 60.0  # seconds between two log lines about closed connections
_LAST_CALL = 0.25  # seconds that a connection without a request stays open after a signal to stop


@dataclass
class Connections:
    """The bounds that the connections of a server share.

    `most` and `most_of_network` are the greatest numbers of open connections. A network is an IPv4
    address, or a /64 of IPv6. A client has `head_seconds` to send the head of a request, and
    `write_seconds` to read the bytes of an answer. `most_of_network` does not bound a proxy.
    """

    most: int = 512
    most_of_network: int = 256
    head_seconds: float = 10.0
    write_seconds: float = 60.0
    is_proxy: Callable[[str], bool] = lambda _: False
    quiet_until: float = 0.0
    open: "dict[BoundedConnection, None]" = field(default_factory=dict)
    """The open connections, ordered by the time since which they wait for a head."""


class BoundedConnection(H11Protocol):
    """Uvicorn's connection, which the server closes beyond the `bounds` of a subclass.

    The time for a head begins with the connection, and again with the end of each answer. A byte of
    the head does not extend the time. Beyond a bound, the server closes the connection that has
    waited longest for a head. So a client that asks at once is always heard.
    """

    bounds: Connections
    _network: str | None = None
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, or close a connection beyond the bounds."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # unread bytes pause writing at once
        bounds = self.bounds
        if self.client and not bounds.is_proxy(self.client[0]):
            self._network = network_of(self.client[0])
        neighbours = [each for each in bounds.open if each._network == self._network]
        self._await_head()
        if self._network and len(neighbours) >= bounds.most_of_network:
            self._close_longest(neighbours)
        elif len(bounds.open) > bounds.most:
            self._close_longest(list(bounds.open))

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._await_head()

    def pause_writing(self) -> None:
        """Give the client some time to read."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.bounds.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer, because the client has read all bytes."""
        super().resume_writing()
        if self._write_timer:
            self._write_timer.cancel()

    def shutdown(self) -> None:
        """Close; a connection without a request stays open for a moment."""
        if self.cycle is None:
            self.loop.call_later(_LAST_CALL, super().shutdown)
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self.bounds.open.pop(self, None)
        for timer in (self._head_timer, self._write_timer):
            if timer:
                timer.cancel()

    def _await_head(self) -> None:
        self.bounds.open.pop(self, None)
        self.bounds.open[self] = None  # at the end of the order
        if self._head_timer:
            self._head_timer.cancel()
        self._head_timer = self.loop.call_later(self.bounds.head_seconds, self._close_without_head)

    @property
    def _answers(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_without_head(self) -> None:
        if not self._answers:
            self.timeout_keep_alive_handler()

    def _close_longest(self, crowd: "list[BoundedConnection]") -> None:
        """Close the connection in ``crowd`` that waits longest for a head, or else ``self``."""
        closing = next((each for each in crowd if not each._answers), self)
        self.bounds.open.pop(closing, None)  # at once, as a closing connection must not count
        closing.transport.abort()
        now, bounds = self.loop.time(), self.bounds
        if now >= bounds.quiet_until:
            bounds.quiet_until = now + _LOG_PAUSE
            logging.getLogger("uvicorn.error").error(
                "more than %d connections of a client or %d of all: closed those without a request",
                bounds.most_of_network,
                bounds.most,
            )
