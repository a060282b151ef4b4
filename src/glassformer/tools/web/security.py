"""Guards every request: its origin and bounds, the headers of its answer, its line in the log."""

import asyncio
import json
import logging
import re
import secrets
import time
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.tools.web.metrics import ServerMetrics

__all__ = [
    "ACCESS_LOG",
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
ACCESS_LOG = logging.getLogger("glassformer.access")
"""The logger of a JSON line for each answer, with no word of a text, an address or a query."""
_STATIC = ("/static/", "/look/", "/engine/")
_DISCARDED = 16 << 20  # bytes of a large body that the server reads before it refuses the request
_SLOWEST = 50_000  # bytes a second of a body, after the first seconds
_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class RefusedError(Exception):
    """The server refuses a request; the answer has the status and ``{"error": message}``.

    `reason` is the name under which the metrics count the refusal.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str = "request",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
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
    """Requests of one client; 0 means any number."""
    max_file_bytes: int = 5 << 20
    max_files: int = 4
    """Files in memory at once."""

    @property
    def max_file_chars(self) -> int:
        """Characters of a file's text."""
        return 10 * self.max_chars

    @property
    def max_subwords(self) -> int:
        """Greatest number of subwords: half of ``max_chars``, and at least 1,000.

        Usual texts have two or more characters for each subword. A letter that the vocabulary lacks
        is a subword for each byte. Long texts of such letters would take minutes.
        """
        return max(1000, self.max_chars // 2)

    @property
    def max_body_bytes(self) -> int:
        """Greatest size: JSON and forms need up to 12 bytes a character, as ``\\ud83d\\ude00``."""
        return 12 * self.max_chars + (1 << 16)


async def read_body(
    receive: Receive, limits: RequestLimits, *, declared: int = 0, file: bool = False
) -> bytes:
    """A request's body. Raises RefusedError 413 if it is too large, 408 if it is too slow.

    `declared` is the size that the request's head names. With `file`, the limit of files counts.

    A client reads no answer while it still writes. So before a refusal the server reads and
    discards some more of a large body.
    """
    largest = limits.max_file_bytes if file else limits.max_body_bytes
    body, size = bytearray(), 0
    end = asyncio.get_running_loop().time() + limits.body_timeout
    try:
        async with asyncio.timeout(limits.body_timeout) as deadline:
            while max(size, declared) <= largest + _DISCARDED:
                message = await receive()
                if message["type"] != "http.request":
                    raise RefusedError(499, "the client disconnected", reason="gone")
                size += len(message.get("body", b""))
                deadline.reschedule(end + size / _SLOWEST)
                if size <= largest:
                    body += message.get("body", b"")
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        raise RefusedError(
            408,
            f"the body took longer than {limits.body_timeout:g} s and a second for each"
            f" {_SLOWEST:,} bytes: send it in one go",
            reason="body",
        ) from None
    if max(size, declared) > largest:
        kind, remedy = ("file", "divide it") if file else ("body", "send less text at once")
        raise RefusedError(
            413, f"the {kind} is larger than {largest:,} bytes: {remedy}", reason="body"
        )
    return bytes(body)


@dataclass
class Guard:
    """An ASGI middleware that reads the body of a POST within the limits before the app sees it.

    `origins` are foreign pages that may send requests, as ``https://example.org``; "*" is all.
    """

    app: ASGIApp
    limits: RequestLimits
    origins: Collection[str]
    metrics: ServerMetrics
    _running: int = 0  # POST requests with a read body and without an answer
    _files: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._files = asyncio.Semaphore(self.limits.max_files)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # as GET; uvicorn leaves out the body
            scope = {**scope, "method": "GET"}
        started = time.monotonic()
        status = 500
        client_id = Headers(scope=scope).get("x-request-id", "")
        name = client_id if _REQUEST_ID.fullmatch(client_id) else secrets.token_hex(8)
        static = _path(scope).startswith(_STATIC)

        async def guarded_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers["X-Request-Id"] = name
                headers.setdefault("Cache-Control", "no-cache" if static else "no-store")
            await send(message)

        try:
            with self.metrics.running.track_inprogress():
                await self._answer(scope, receive, guarded_send)
        except RefusedError as refusal:
            scope["refusal"] = refusal.reason
            await refusal.response()(scope, receive, guarded_send)
        finally:
            seconds = time.monotonic() - started
            # The route in place of the path: each label costs memory, and clients choose the paths.
            path = getattr(scope.get("route"), "path", "static" if static else "other")
            self.metrics.request(path, status, seconds, refusal=scope.get("refusal"))
            record = {"id": name, "path": path, "status": status, "seconds": round(seconds, 3)}
            ACCESS_LOG.info("%s", json.dumps(record | {"characters": scope.get("characters", 0)}))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if {"content-length", "transfer-encoding"} <= set(headers):
            # A proxy may have read another length, and taken a part of the body for a request.
            raise RefusedError(
                400,
                "expected one of Content-Length and Transfer-Encoding",
                reason="body",
                headers={"Connection": "close"},
            )
        if scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        if _foreign(headers) and not {"*", headers.get("origin")} & set(self.origins):
            raise RefusedError(
                403,
                "a page of another site asks, and the server does not allow its origin",
                reason="site",
            )
        file = _path(scope) == FILE_PATH
        length = headers.get("content-length", "")
        declared = int(length) if length.isdecimal() else 0
        async with self._files if file else nullcontext():  # few files are in memory at once
            body = await read_body(receive, self.limits, declared=declared, file=file)
            if headers.get("content-encoding", "").lower() not in ("", "identity"):
                raise RefusedError(
                    415,
                    "Content-Encoding: expected a body without compression",
                    headers={"Accept-Encoding": "identity"},
                )
            if self._running >= self.limits.max_requests:
                raise RefusedError(
                    503,
                    "too many requests at once: try again soon",
                    reason="busy",
                    headers={"Retry-After": "2"},
                )
            self._running += 1
            try:
                await self.app(scope, _replay(body, receive), send)
            finally:
                self._running -= 1


def _path(scope: Scope) -> str:
    """The server's own address, without the path of a `SubPath`."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def _foreign(headers: Headers) -> bool:
    """Whether a page of another site asks, which would make the server work without a use.

    Only browsers send Origin, and Sec-Fetch-Site if the server is https or this machine.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None and origin is not None:
        return origin.partition("://")[2] != headers.get("host")
    return site not in (None, "none", "same-origin")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Gives the app the body in one message, then the client's later messages (a disconnect)."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
