"""A connection that does not wait for ever for a request."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["PatientProtocol"]

_SECONDS = 10.0  # in which a request's head must have come


class PatientProtocol(H11Protocol):
    """Uvicorn's, and it closes where no request runs and none has begun since the last look.

    Uvicorn itself lets a client send its head byte by byte for as long as it likes; some hundreds
    of such clients would keep all others out.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look now and then. (Uvicorn narrows the type as well: TCP has a Transport.)"""
        super().connection_made(transport)
        self.loop.call_later(_SECONDS, self._look, None)

    def _look(self, last: object) -> None:
        if self.transport.is_closing():
            return
        running = self.cycle is not None and not self.cycle.response_complete
        if not running and self.cycle is last:
            self.transport.abort()
            return
        self.loop.call_later(_SECONDS, self._look, self.cycle)
