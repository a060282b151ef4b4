"""Guards every request: its origin and key, its bounds, and the headers of its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.web.metrics import ServerMetrics

__all__ = [
    "FILE_PATH",
    "SECURITY_HEADERS",
    "Guard",
    "RefusedError",
    "RequestLimits",
    "read_body",
]

SECURITY_HEADERS = {
    # Scripts and styles come from this server's files only: no markup in a page can run.
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
FILE_PATH = "/translate_file"
"""The address that takes a file."""
_STATIC = ("/static/", "/look/")
_DISCARDED = 8  # times the body limit: the server reads so much before it refuses a large body


class RefusedError(Exception):
    """The server refuses a request: its answer has this status and ``{"error": message}``."""

    def __init__(
        self, status: int, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers

    def response(self) -> JSONResponse:
        """The answer in LibreTranslate's shape."""
        return JSONResponse({"error": str(self)}, self.status, headers=self.headers)


@dataclass(frozen=True)
class RequestLimits:
    """The bounds of each request; times are in seconds.

    >>> RequestLimits(max_chars=1000).max_body_bytes
    77536
    """

    max_chars: int = 20_000
    max_requests: int = 128
    timeout: float = 60.0
    body_timeout: float = 10.0
    max_alternatives: int = 10
    per_minute: int = 0
    """Requests of one client; 0: any number."""
    max_file_bytes: int = 5 << 20
    max_files: int = 4
    """Files at once: each of them is in memory."""

    @property
    def max_subwords(self) -> int:
        """A text in a language of the model has two or more characters for each subword.

        Letters that the vocabulary lacks, and endless words, are a subword for each byte. Their
        translation takes minutes.
        """
        return max(1000, self.max_chars // 2)

    @property
    def max_body_bytes(self) -> int:
        """JSON and forms need at most 12 bytes for a character, as in ``\\ud83d\\ude00``."""
        return 12 * self.max_chars + (1 << 16)


async def read_body(receive: Receive, limits: RequestLimits, *, file: bool = False) -> bytes:
    """A request's body. Raises RefusedError 413 if it is too large, 408 if it is too slow.

    With ``file`` it holds one, which may be larger and come over a slow line.

    A client reads no answer while it still writes. So the server reads some more of a body that
    is too large, and discards it, before it refuses.
    """
    largest = limits.max_file_bytes if file else limits.max_body_bytes
    seconds = limits.timeout if file else limits.body_timeout
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(seconds):
            while size <= _DISCARDED * largest:
                message = await receive()
                if message["type"] != "http.request":
                    raise RefusedError(400, "the client disconnected")
                size += len(message.get("body", b""))
                if size <= largest:
                    body += message.get("body", b"")
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        raise RefusedError(
            408, f"the body took longer than {seconds:g} s: send it in one go"
        ) from None
    if size > largest:
        raise RefusedError(
            413, f"the body is larger than {largest:,} bytes: send less text at once"
        )
    return bytes(body)


@dataclass
class Guard:
    """An ASGI middleware around the app. `origins`: of foreign pages that may send requests.

    An origin is such as ``https://example.org``; "*" is all.

    It reads the body of a POST within the limits before the app sees the request.
    """

    app: ASGIApp
    limits: RequestLimits
    origins: Collection[str]
    metrics: ServerMetrics
    _running: int = 0  # POST requests that are not answered yet
    _files: int = 0  # POST requests with a file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
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
            await self._answer(scope, receive, guarded_send)
        except RefusedError as refusal:
            await refusal.response()(scope, receive, guarded_send)
        finally:
            # Not the path itself: each label costs memory, and clients choose the paths.
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.request(route, status, time.monotonic() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        # A foreign page cannot read the answer, but its form would make the server work. Only
        # browsers send Sec-Fetch-Site.
        foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if foreign and not {"*", headers.get("origin")} & set(self.origins):
            raise RefusedError(
                403, "a page of another site asks: start the server with --allow-origin ORIGIN"
            )
        file = scope["path"] == FILE_PATH
        if self._running >= self.limits.max_requests or (
            file and self._files >= self.limits.max_files
        ):
            raise RefusedError(
                503, "too many requests at once: try again soon", headers={"Retry-After": "2"}
            )
        self._running += 1
        self._files += file
        try:
            body = await read_body(receive, self.limits, file=file)
            await self.app(scope, _replay(body, receive), send)
        finally:
            self._running -= 1
            self._files -= file


def _replay(body: bytes, receive: Receive) -> Receive:
    """Gives the app the body in one message, then the client's later messages (a disconnect)."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
