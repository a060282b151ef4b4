"""The server: the translator's page, its addresses, and a clean end.

Nothing of a request is logged: neither text nor address; `/metrics` counts.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from glassformer.config import BEAM
from glassformer.errors import InputError
from glassformer.web.limits import Keys, Limits, RefusedError
from glassformer.web.metrics import Metrics
from glassformer.web.queue import Batcher
from glassformer.web.routes import Api, fault
from glassformer.web.security import Guard
from glassformer.web.service import Service, by_pair

if TYPE_CHECKING:
    from glassformer.translator import Translator

__all__ = ["Settings", "create_app", "listen", "serve"]

_STATIC = Path(__file__).parent / "static"
_CONNECTIONS = 512  # at once; whoever comes above that is told 503


@dataclass(frozen=True)
class Settings:
    """How a server serves. `hosts`: names under which it answers; None: under any."""

    beam: int = BEAM
    limits: Limits = field(default_factory=Limits)
    keys: Collection[str] = ()
    hosts: Collection[str] | None = ()


def create_app(
    translators: Mapping[str, Translator],
    settings: Settings | None = None,
    *,
    routes: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """The server of these translators, by the names of their bundles, as an ASGI app.

    ``routes`` are added to its own. Its thread ends with the app's lifespan. Raises UsageError for
    two of one language pair.
    """
    settings = settings or Settings()
    metrics = Metrics()
    pairs = by_pair(translators)
    batcher = Batcher(observe=metrics.batch)
    metrics.watch_queue(lambda: batcher.waiting)
    service = Service(pairs, batcher, settings.beam)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        batcher.close()

    app = FastAPI(
        title="Glassformer",
        version="1",
        lifespan=lifespan,
        docs_url=None,  # its pages load their scripts from elsewhere
        redoc_url=None,
    )
    app.include_router(Api(service, Keys(settings.keys), settings.limits, metrics).router())
    app.router.routes.extend(routes)
    _add_pages(app)
    _say_errors_as_json(app)
    return Guard(app, limits=settings.limits, hosts=settings.hosts, metrics=metrics)


def _add_pages(app: FastAPI) -> None:
    """`/` is the translator's page, `/look/` shows its inside."""

    async def page() -> FileResponse:
        return FileResponse(_STATIC / "translate.html")

    async def look() -> FileResponse:
        return FileResponse(_STATIC / "look" / "look.html")

    async def to_look() -> RedirectResponse:
        return RedirectResponse("look/", 307)

    for path, handler in (("/", page), ("/look", to_look), ("/look/", look)):
        app.add_api_route(path, handler, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/look", StaticFiles(directory=_STATIC / "look"))
    app.mount("/static", StaticFiles(directory=_STATIC))


def _say_errors_as_json(app: FastAPI) -> None:
    """Every error has LibreTranslate's shape; none repeats what was sent."""

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, RefusedError)
        return JSONResponse({"error": error.message}, error.status, headers=error.headers)

    async def impossible(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, 400)

    async def wrong(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": f"Invalid request: {fault(error)}"}, 400)

    async def http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)

    async def broken(_: Request, __: Exception) -> Response:
        return JSONResponse({"error": "a fault of the server, which its log tells"}, 500)

    app.add_exception_handler(RefusedError, refused)
    app.add_exception_handler(InputError, impossible)
    app.add_exception_handler(RequestValidationError, wrong)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, broken)


def listen(host: str, port: int) -> socket.socket:
    """A socket at that place; port 0 takes any free one. InputError where it cannot be."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        place = socket.create_server((host, port), family=family, backlog=256)
    except (OSError, UnicodeError) as error:  # a name that is none for IDNA is the second
        reason = str(getattr(error, "strerror", "no host's name")).partition(" (")[0]
        raise InputError(
            f"cannot listen on {host}:{port} ({reason}): choose another --host or --port"
        ) from error
    # Head and body of an answer are two writes: the second must not wait for the client to
    # acknowledge the first, which takes 40 ms. Its connections inherit this.
    place.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return place


def serve(app: ASGIApp, place: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; what is in flight then is answered first."""
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
    )
    # Uvicorn raises the signal that ended it once more; this work is done by then.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    uvicorn.Server(config).run(sockets=[place])
