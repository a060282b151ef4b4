"""Lets the server stand below a path of another host, as in ``https://example.org/translate/``."""

import re
from collections.abc import Container
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["ROOT_PATH", "SubPath"]

ROOT_PATH = re.compile(r"(/[\w.~-]+)+", re.ASCII)
"""The form of a path such as ``/translate``."""


@dataclass(frozen=True)
class SubPath:
    """An ASGI middleware that gives the app ASGI's ``root_path``, a part of ``path``.

    A proxy in `trusted` names the path that it has cut off in X-Forwarded-Prefix. Without the
    header the path is `root`, which a proxy may have cut off or left. GET of `root` redirects.
    """

    app: ASGIApp
    root: str
    trusted: Container[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host, _ = scope.get("client") or ("", 0)
            cut = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
            if host not in self.trusted or not ROOT_PATH.fullmatch(cut):
                cut = ""
            root, path, method = cut or self.root, scope["path"], scope["method"]
            left = not cut and (path.startswith(f"{root}/") or (path, method) == (root, "GET"))
            whole = path if left else root + path
            scope = {**scope, "root_path": root, "path": whole}
        await self.app(scope, receive, send)
