"""Builds the server from its translators, pages and addresses, and runs it under uvicorn.

The log holds no text and no address of a request; `/metrics` counts requests.
"""

import gc
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Mount, Route
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from glassformer import __version__
from glassformer.config import BEAM
from glassformer.data.terms import Terms
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.web.connections import BoundedConnection, Connections
from glassformer.tools.web.metrics import ServerMetrics
from glassformer.tools.web.queue import Batcher
from glassformer.tools.web.rate import RequestRate
from glassformer.tools.web.request_body import first_error
from glassformer.tools.web.routes import Api
from glassformer.tools.web.security import ACCESS_LOG, Guard, RefusedError, RequestLimits
from glassformer.tools.web.service import Service, translators_by_pair
from glassformer.tools.web.sub_path import SubPath
from glassformer.tools.web.translated_files import FileApi
from glassformer.translator import Translator

__all__ = ["Settings", "create_app", "listen", "serve", "uvicorn_config"]

_STATIC = Path(__file__).parent / "static"
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_BACKLOG = 128  # connections that the server accepts at once
_FILES = 4096  # open files of the process; connections need far fewer
_SOCKET_OF_SYSTEMD = 3  # the first file descriptor that systemd passes


@dataclass(frozen=True)
class Settings:
    """The settings of a server.

    `keys` and `metrics_keys` can change while the server runs. Without `metrics_keys`, `keys` open
    the metrics too. `hosts` are the server's host names; None means all. `origins` are foreign
    pages that may send requests. `proxies` are networks that name the client in X-Forwarded-For.
    `root_path` is the path at which clients reach the server, such as "/translate".
    `access_log` prints a line of JSON for each answer. `warm_up` runs the slow first batches before
    clients come, and measures the speed. `glossaries` are the terms of each bundle, in order.
    `through` is the pivot language for pairs without a translator; None refuses such pairs.
    """

    beam: int = BEAM
    limits: RequestLimits = field(default_factory=RequestLimits)
    keys: list[str] = field(default_factory=list)
    metrics_keys: list[str] = field(default_factory=list)
    hosts: Collection[str] | None = ()
    origins: Collection[str] = ()
    proxies: Sequence[str] = ()
    root_path: str = ""
    access_log: bool = False
    warm_up: bool = False
    glossaries: Sequence[Terms] = ()
    through: str | None = None


def create_app(translators: Mapping[str, Translator], settings: Settings) -> SubPath:
    """An ASGI app that serves the translators; each key is the name of a bundle.

    The batcher's thread ends with the app's lifespan. Raises UsageError if two translators share a
    language pair, no pair needs the pivot language `through`, or the app itself has `root_path`.
    """
    metrics = ServerMetrics()
    by_pair = translators_by_pair(translators)
    limits = settings.limits
    batcher = Batcher(patience=limits.timeout, observe=metrics.batch, waited=metrics.waits.observe)
    metrics.waiting.set_function(lambda: batcher.waiting)
    for pair, name in zip(by_pair, translators, strict=True):
        metrics.translators.labels(__version__, *pair, Path(name).name).set(1)
    glossaries = dict(zip(by_pair, settings.glossaries, strict=False))
    service = Service(
        by_pair, batcher, settings.beam, glossaries, limits.max_subwords, settings.through
    )
    if settings.through and service.pairs == replace(service, through=None).pairs:
        raise UsageError(
            f"{settings.through}: expected a bundle into this language, and a bundle from it into"
            " another language",
            argument="through",
        )
    rate = RequestRate(limits.per_minute)
    api = Api(service, settings.keys, settings.metrics_keys, limits, metrics, rate)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if settings.warm_up:
            await service.warm_up()
        _tell_systemd(b"READY=1")
        yield
        _tell_systemd(b"STOPPING=1")
        batcher.close()

    app = FastAPI(
        title="Glassformer",
        version="1",
        lifespan=lifespan,
        openapi_url="/spec",  # LibreTranslate's address
        docs_url=None,  # FastAPI's documentation pages load scripts from other hosts
        redoc_url=None,
    )
    api.add_to(app)
    of_file = replace(limits, max_chars=limits.max_file_chars)
    reader = replace(service, max_subwords=of_file.max_subwords)
    FileApi(replace(api, limits=of_file, service=reader)).add_to(app)
    _add_pages(app)
    _check_root_path(app, settings.root_path)
    for kind in (RefusedError, InputError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _error_response)
    return _guarded(app, settings, metrics)


def _guarded(app: ASGIApp, settings: Settings, metrics: ServerMetrics) -> SubPath:
    """The app behind its guards, which see each request first."""
    if settings.hosts is not None:
        # A foreign page can let its host name resolve to 127.0.0.1 (DNS rebinding). The browser
        # then sends the page's name.
        names = [*_LOCAL_NAMES, *settings.hosts]
        app = TrustedHostMiddleware(app, allowed_hosts=names, www_redirect=False)
    app = Guard(app, settings.limits, settings.origins, metrics)
    if settings.origins:
        app = CORSMiddleware(
            app,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-Id"],
            expose_headers=["Retry-After", "X-Request-Id"],
        )
    named = ProxyHeadersMiddleware(app, list(settings.proxies))  # type: ignore[arg-type]
    return SubPath(named, settings.root_path, named.trusted_hosts)  # type: ignore[arg-type]


def _add_pages(app: FastAPI) -> None:
    """Add the translator's page at `/`, and the page that looks inside the model at `/look/`."""
    pages: dict[str, Callable[[], Response]] = {
        "/": lambda: FileResponse(_STATIC / "translate.html"),
        "/look": lambda: RedirectResponse("look/", 307),
        "/look/": lambda: FileResponse(_STATIC / "look" / "look.html"),
    }
    for path, page in pages.items():
        app.add_api_route(path, page, methods=["GET"], include_in_schema=False)
    folders = {"/look": "look", "/engine": "engine", "/static": ""}
    for path, folder in folders.items():
        app.mount(path, GZipMiddleware(StaticFiles(directory=_STATIC / folder)))


def _check_root_path(app: FastAPI, root: str) -> None:
    """Raise UsageError if the server has an address of its own at `root` or below.

    The server cannot know whether a proxy has cut `root` off from such an address.
    """
    routes = [route for route in app.routes if isinstance(route, Mount | Route)]
    read = [r.path for r in routes if isinstance(r, Mount) or "GET" in (r.methods or ())]
    if root.split("/")[1:2] in [path.split("/")[1:2] for path in read]:
        raise UsageError(
            f"{root}: the server itself has this address: take another path", argument="root_path"
        )


async def _error_response(request: Request, error: Exception) -> Response:
    """An error in LibreTranslate's shape, without a text of the request."""
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
            reason = "internal error: the server's log has the details"
            refusal = RefusedError(500, reason, reason="fault")
    request.scope["refusal"] = refusal.reason
    return refusal.response()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, from systemd or new; port 0 takes any free port.

    Raises InputError if the server cannot listen.
    """
    if os.environ.get("LISTEN_PID") == str(os.getpid()):
        listener = socket.socket(fileno=_SOCKET_OF_SYSTEMD)
        if listener.family not in (socket.AF_INET, socket.AF_INET6):
            listener.close()
            raise InputError("systemd's socket: expected ListenStream=127.0.0.1:5000, or the like")
    else:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except (OSError, UnicodeError) as error:  # UnicodeError: IDNA cannot encode the host name
            reason = str(getattr(error, "strerror", "not a host name")).partition(" (")[0]
            raise InputError(
                f"cannot listen on {host}:{port} ({reason}): choose another host or port"
            ) from error
    # Uvicorn writes head and body of an answer one after the other. By default the kernel holds
    # the body until the client acknowledges the head: 40 ms. Connections inherit this option.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _tell_systemd(message: bytes) -> None:
    """Send the state to systemd, if it started the server with `Type=notify`."""
    if address := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifications:
            notifications.sendto(message, address.replace("@", "\0", 1))


def serve(
    app: SubPath,
    listener: socket.socket,
    settings: Settings,
    *,
    reread: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish running requests; call `reread` after SIGHUP."""
    # Uvicorn ends by raising the signal again, and the process must then exit with status 0.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: reread())
    if settings.access_log:
        ACCESS_LOG.addHandler(logging.StreamHandler(sys.stdout))
        ACCESS_LOG.setLevel(logging.INFO)
    with suppress(ImportError, OSError, ValueError):  # as on Windows
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(_FILES, hard)), hard))
    connections = Connections(is_proxy=app.trusted.__contains__)
    config = uvicorn_config(app, connections, seconds=settings.limits.timeout)
    uvicorn.Server(config).run(sockets=[listener])
    gc.freeze()  # the process ends: it need not first look through all objects of torch


def uvicorn_config(app: ASGIApp, connections: Connections, *, seconds: float) -> uvicorn.Config:
    """Uvicorn's settings for an app, with bounds of its connections.

    After a signal to stop, the server waits `seconds`, the limit of a request, for its clients.
    """

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
        timeout_graceful_shutdown=math.ceil(seconds) + 2,
    )
