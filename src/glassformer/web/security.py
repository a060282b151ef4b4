"""What stands around every request: its headers, its bounds, its place in the metrics."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TypeAlias

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.web.limits import Limits, RefusedError, host_is_known, read_body
from glassformer.web.metrics import Metrics

__all__ = ["SECURITY_HEADERS", "Guard"]

SECURITY_HEADERS = {
    # Scripts and styles only from files of this server: nothing that stands in the page runs.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_STATIC = ("/static/", "/look/")

Names: TypeAlias = Collection[str]


class Guard:
    """An ASGI middleware. `hosts`: the names under which it may be called; None: under any.

    The body of a POST is read here, within its bounds, before the app sees the request.
    """

    def __init__(
        self, app: ASGIApp, *, limits: Limits, hosts: Names | None, metrics: Metrics
    ) -> None:
        self._app = app
        self._limits = limits
        self._hosts = hosts
        self._metrics = metrics
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status = 500
        static = scope["path"].startswith(_STATIC)

        async def guarded_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers.setdefault("Cache-Control", "no-cache" if static else "no-store")
            await send(message)

        try:
            await self._bounded(scope, receive, guarded_send)
        finally:
            self._metrics.request(scope["path"], status, time.monotonic() - started)

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            host = Headers(scope=scope).get("host", "")
            if self._hosts is not None and not host_is_known(host, self._hosts):
                raise RefusedError(
                    421, "this server does not answer to that Host: see --allow-host"
                )
            if scope["method"] != "POST":
                await self._app(scope, receive, send)
                return
            if self._inside >= self._limits.max_requests:
                raise RefusedError(503, "too many requests at once: try again soon", retry_after=2)
            self._inside += 1
            try:
                body = await read_body(receive, self._limits)
                await self._app(scope, _replay(body, receive), send)
            finally:
                self._inside -= 1
        except RefusedError as refusal:
            answer = JSONResponse(
                {"error": refusal.message}, refusal.status, headers=refusal.headers
            )
            await answer(scope, receive, send)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body as one message; after it whatever comes, which says that the client has gone."""
    told = False

    async def replay() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
