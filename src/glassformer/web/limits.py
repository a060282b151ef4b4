"""What a stranger may ask for: sizes, times, how many at once, under which name, with which key."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Collection
from dataclasses import dataclass

from starlette.types import Receive

__all__ = ["Keys", "Limits", "RefusedError", "host_is_known", "read_body"]

_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_READ_ON = 8  # times the limit: so much of a body that is too large is read, and not kept


class RefusedError(Exception):
    """A request that is not answered, and why: ``{"error": message}`` with this status."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}


@dataclass(frozen=True)
class Limits:
    """The bounds of a server; times in seconds.

    >>> Limits(max_chars=1000).max_body_bytes
    77536
    """

    max_chars: int = 20_000
    max_requests: int = 128
    timeout: float = 60.0
    body_timeout: float = 10.0
    max_alternatives: int = 10

    @property
    def max_body_bytes(self) -> int:
        """12 bytes a character are the most that JSON or a form needs, as in ``\\ud83d\\ude00``."""
        return 12 * self.max_chars + (1 << 16)


class Keys:
    """The keys of whom may ask; none at all: everybody may. Compared in constant time.

    >>> keys = Keys(["open sesame"])
    >>> keys.fit("open sesame"), keys.fit("open wheat"), keys.fit(None), Keys([]).fit(None)
    (True, False, False, True)
    """

    def __init__(self, keys: Collection[str]) -> None:
        self._digests = [_digest(key) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def fit(self, key: str | None) -> bool:
        """Whether whoever shows this key may ask."""
        if not self._digests:
            return True
        given = _digest(key or "")
        # All of them, without an end at the first that fits.
        return sum(hmac.compare_digest(given, own) for own in self._digests) > 0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def host_is_known(header: str, names: Collection[str]) -> bool:
    """Whether a request came under one of the names, or under one of this very machine.

    A page of a stranger's can let its own name point to 127.0.0.1 (DNS rebinding); the browser
    then sends that name, and is refused.

    >>> host_is_known("localhost:5000", []), host_is_known("evil.example:5000", [])
    (True, False)
    """
    name, _, port = header.lower().rpartition(":")
    if not port.isdigit():
        name = header.lower()
    return name in _LOCAL_NAMES or name in names


async def read_body(receive: Receive, limits: Limits) -> bytes:
    """A request's body. RefusedError 413 if it is too large, 408 if it comes too slowly.

    Of a large one some more is read before the refusal: one that came while the client still writes
    would be lost to it.
    """
    most = limits.max_body_bytes
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(limits.body_timeout):
            while size <= _READ_ON * most:
                message = await receive()
                if message["type"] != "http.request":
                    raise RefusedError(400, "the client has gone")
                size += len(message.get("body", b""))
                if size <= most:
                    body += message.get("body", b"")
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        raise RefusedError(
            408, f"the body took longer than {limits.body_timeout:g} s to come: send it at once"
        ) from None
    if size > most:
        raise RefusedError(413, f"the body is larger than {most:,} bytes: send less text at once")
    return bytes(body)
