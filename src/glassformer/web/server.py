"""Builds the server from its translators, pages and addresses, and runs it under uvicorn.

It logs nothing of a request, neither text nor address; `/metrics` counts.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from glassformer.config import BEAM
from glassformer.data.terms import Terms
from glassformer.errors import InputError, UsageError
from glassformer.web.connections import BoundedConnection, Connections
from glassformer.web.metrics import ServerMetrics
from glassformer.web.queue import Batcher
from glassformer.web.rate import RequestRate
from glassformer.web.request_body import first_error
from glassformer.web.routes import Api
from glassformer.web.security import Guard, RefusedError, RequestLimits
from glassformer.web.service import Service, translators_by_pair
from glassformer.web.translated_files import FileApi

if TYPE_CHECKING:
    from glassformer.translator import Translator

__all__ = ["Settings", "create_app", "listen", "serve", "uvicorn_config"]

_STATIC = Path(__file__).parent / "static"
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_PROXIES = ("127.0.0.1", "::1")
_BACKLOG = 256  # connections at once; with the open ones, fewer than a process may have files


@dataclass(frozen=True)
class Settings:
    """The settings of a server.

    `hosts`: the host names that it answers to; None: all. `origins`: those of foreign pages that
    may send requests. `trust_proxy`: a proxy on this machine names the client in X-Forwarded-For.
    `glossaries`: the terms of each bundle, in their order; or none. `through`: the language by way
    of which pairs without a translator are translated; None: such pairs are refused.
    """

    beam: int = BEAM
    limits: RequestLimits = field(default_factory=RequestLimits)
    keys: Collection[str] = ()
    hosts: Collection[str] | None = ()
    origins: Collection[str] = ()
    trust_proxy: bool = False
    glossaries: Sequence[Terms] = ()
    through: str | None = None


def create_app(translators: Mapping[str, Translator], settings: Settings) -> ASGIApp:
    """An ASGI app that serves these translators, given by the names of their bundles.

    The batcher's thread ends with the app's lifespan. Raises UsageError if two translators have
    the same language pair, or if no pair needs the language `through`.
    """
    metrics = ServerMetrics()
    by_pair = translators_by_pair(translators)
    limits = settings.limits
    batcher = Batcher(patience=limits.timeout, observe=metrics.batch)
    metrics.waiting.set_function(lambda: batcher.waiting)
    glossaries = dict(zip(by_pair, settings.glossaries, strict=False))
    service = Service(
        by_pair, batcher, settings.beam, glossaries, limits.max_subwords, settings.through
    )
    if settings.through and len(service.pairs) == len(by_pair):
        raise UsageError(
            f"--through {settings.through}: expected one BUNDLE into this language, and one out of"
            " it into another language"
        )
    api = Api(service, settings.keys, limits, metrics, RequestRate(limits.per_minute))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        batcher.close()

    app = FastAPI(
        title="Glassformer",
        version="1",
        lifespan=lifespan,
        openapi_url="/spec",  # where LibreTranslate has it
        docs_url=None,  # FastAPI's documentation pages load scripts from other hosts
        redoc_url=None,
    )
    api.add_to(app)
    FileApi(api).add_to(app)
    _add_pages(app)
    for kind in (RefusedError, InputError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _error_response)
    return _guarded(app, settings, metrics)


def _guarded(app: ASGIApp, settings: Settings, metrics: ServerMetrics) -> ASGIApp:
    """The app behind its guards, which see each request first."""
    app = Guard(app, settings.limits, settings.origins, metrics)
    if settings.hosts is not None:
        # A foreign page can make its own name resolve to 127.0.0.1 (DNS rebinding). The browser
        # then sends that name.
        names = [*_LOCAL_NAMES, *settings.hosts]
        app = TrustedHostMiddleware(app, allowed_hosts=names, www_redirect=False)
    if settings.origins:
        app = CORSMiddleware(
            app,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    if settings.trust_proxy:
        app = ProxyHeadersMiddleware(app, trusted_hosts=list(_PROXIES))  # type: ignore[arg-type,assignment]
    return app


def _add_pages(app: FastAPI) -> None:
    """`/` is the translator's page, `/look/` the page that looks inside it."""
    pages: dict[str, Callable[[], Response]] = {
        "/": lambda: FileResponse(_STATIC / "translate.html"),
        "/look": lambda: RedirectResponse("look/", 307),
        "/look/": lambda: FileResponse(_STATIC / "look" / "look.html"),
    }
    for path, page in pages.items():
        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/look", StaticFiles(directory=_STATIC / "look"))
    app.mount("/static", StaticFiles(directory=_STATIC))


async def _error_response(_: Request, error: Exception) -> Response:
    """Every error in LibreTranslate's shape; none repeats a text."""
    match error:
        case RefusedError():
            refusal = error
        case InputError():
            refusal = RefusedError(400, str(error))
        case RequestValidationError():
            refusal = RefusedError(400, f"Invalid request: {first_error(error)}")
        case HTTPException():
            refusal = RefusedError(error.status_code, error.detail, headers=error.headers)
        case _:
            refusal = RefusedError(500, "internal error: the server's log has the details")
    return refusal.response()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free port. Raises InputError if there is none."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:  # UnicodeError: IDNA cannot encode the host name
        reason = str(getattr(error, "strerror", "not a host name")).partition(" (")[0]
        raise InputError(
            f"cannot listen on {host}:{port} ({reason}): choose another --host or --port"
        ) from error
    # Uvicorn writes head and body of an answer one after the other. By default the kernel holds
    # the body until the client acknowledges the head: 40 ms. Connections inherit this option.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def serve(app: ASGIApp, listener: socket.socket, *, trust_proxy: bool = False) -> None:
    """Serve until SIGTERM or SIGINT, then finish the running requests.

    With ``trust_proxy``, a proxy on this machine may open as many connections as all clients.
    """
    # Uvicorn ends by raising the signal again: the process must survive it to exit with status 0.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    connections = Connections(proxies=_PROXIES if trust_proxy else ())
    uvicorn.Server(uvicorn_config(app, connections)).run(sockets=[listener])


def uvicorn_config(app: ASGIApp, connections: Connections) -> uvicorn.Config:
    """Uvicorn's settings for this app, with these bounds of its connections."""

    class Connection(BoundedConnection):
        bounds = connections

    return uvicorn.Config(
        app,
        loop="asyncio",
        http=Connection,
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
    )
