"""``glassformer serve``: translators behind a page and LibreTranslate's network interface."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, IPvAnyNetwork

from glassformer.config import BEAM, MOST_BEAM
from glassformer.data.lines import read_lines
from glassformer.support.errors import InputError, UsageError, counted, missing_extra
from glassformer.tools.cli.loading import LoadingOptions, wait_asleep

if TYPE_CHECKING:
    from glassformer.data.terms import Terms
    from glassformer.tools.web.server import Settings

__all__ = ["OPTIONS", "ServeOptions", "run"]

_ORIGIN = re.compile(r"[a-z][a-z+.-]*://[^/?#\s]+")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ServeOptions(LoadingOptions):
    """Serve the translators in the BUNDLEs, one for each language pair.

    The page is at /, and the view inside the model at /look/. POST /translate, GET /languages and
    GET /health follow LibreTranslate. After SIGTERM or Ctrl+C the server answers the open
    requests, then ends.
    """

    groups: ClassVar[dict[str, str]] = {
        "host": "address and access",
        "max_chars": "limits",
        "beam": "translation",
    }

    bundles: tuple[Path, ...] = Field(min_length=1, title="BUNDLE [BUNDLE ...]")
    """Directories of trained translators."""
    host: str = "127.0.0.1"
    """Address to listen on. Other machines reach a server on 0.0.0.0, so add --api-key-file."""
    port: int = Field(5000, ge=0, le=65535)
    """Port to listen on; 0 means any free port."""
    allow_host: tuple[str, ...] = ()
    """Further host names on 127.0.0.1, such as a proxy's; other names get "Invalid host header"."""
    allow_origin: tuple[str, ...] = ()
    """Other sites whose pages may send requests, such as https://example.org; * means all sites."""
    trust_proxy: tuple[IPvAnyNetwork, ...] = ()
    """Addresses or networks of proxies, such as 127.0.0.1 or 172.16.0.0/12. The server takes a
    client's address from the X-Forwarded-For of a proxy, and the path that the proxy has cut off
    from its X-Forwarded-Prefix."""
    root_path: str = ""
    """Path at which clients reach the server, such as /translate. A proxy may cut it off or not."""
    api_key_file: Path | None = None
    """File with one key a line. The server refuses a request without a key from the file, and reads
    the file anew after SIGHUP."""
    metrics_key_file: Path | None = None
    """File with one key a line, for /metrics alone. None means the keys of --api-key-file."""
    access_log: bool = False
    """Print a line of JSON for each answer, without its texts and the client's address."""
    max_chars: int = Field(20_000, ge=1, le=1_000_000)
    """Greatest number of characters of a request; the limit for subwords is half as high."""
    max_requests: int = Field(128, ge=1, le=10_000)
    """Greatest number of requests at once; the server refuses more (503)."""
    requests_per_minute: int = Field(0, ge=0, le=1_000_000)
    """Greatest number of requests a minute from a key or address; the server refuses more (429).
    A request counts once for each 1,000 characters. 0 means no limit."""
    timeout: float = Field(60.0, gt=0, le=3600)
    """Number of seconds after which the server gives up a request (503)."""
    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Hypotheses of the beam search; 1 means greedy search."""
    glossary: tuple[Path, ...] = ()
    """A file of terms for each BUNDLE, in the order of the bundles. A line has the source term, a
    tab and the target term; alternative forms follow after tabs."""
    through: str | None = None
    """Language, such as en, through which the server translates pairs without a BUNDLE. With None,
    the server offers no such pairs."""
    threads: int = Field(0, ge=0, le=1024)
    """Number of CPU threads. 0 means one thread for engine torch if every model's d_model is below
    512, and otherwise all threads."""


OPTIONS = ServeOptions


def run(options: ServeOptions) -> int:
    """Listen on the port, load the bundles, print the address, and serve until a signal comes.

    Raises:
        UsageError: an option is out of range, or two bundles have one language pair.
        InputError: a bundle or the key file cannot be read, the port is in use, or fastapi is
            absent.
    """
    wait_asleep()
    try:
        from glassformer.tools.web.server import create_app, listen, serve
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "fastapi", "serve") from error
    options = options.model_copy(update={"host": options.host.strip("[]")})  # as in a URL
    settings = _settings(options)
    listener = listen(options.host, options.port)  # first: the port may be in use
    with listener:
        translators = options.load_to_serve(options.bundles)
        app = create_app(translators, settings)
        for name, translator in translators.items():
            print(f"{name}: engine {translator.engine_name}", file=sys.stderr, flush=True)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        print(f"http://{shown}:{port}/ translates until Ctrl+C", flush=True)
        serve(app, listener, settings, reread=lambda: _reread_keys(options, settings))
    return 0


def _settings(options: ServeOptions) -> Settings:
    from glassformer.tools.web.security import RequestLimits
    from glassformer.tools.web.server import Settings
    from glassformer.tools.web.sub_path import ROOT_PATH

    root_path = options.root_path.rstrip("/")
    if root_path and not ROOT_PATH.fullmatch(root_path):
        raise UsageError(f"--root-path {root_path!r}: expected a path such as /translate")
    if options.allow_host and options.host not in _LOOPBACK:
        raise UsageError(
            f"--allow-host belongs to a server on 127.0.0.1; {options.host} takes any host name"
        )
    for name in options.allow_host:
        if "*" in name.removeprefix("*."):
            raise UsageError(
                f"--allow-host {name!r}: expected a name such as translate.example.org, or"
                " *.example.org for all names under it"
            )
    for origin in options.allow_origin:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise UsageError(f"--allow-origin {origin!r}: expected https://example.org, or *")
    return Settings(
        beam=options.beam,
        glossaries=_glossaries(options),
        limits=RequestLimits(
            max_chars=options.max_chars,
            max_requests=options.max_requests,
            timeout=options.timeout,
            per_minute=options.requests_per_minute,
        ),
        origins=options.allow_origin,
        proxies=list(map(str, options.trust_proxy)),
        root_path=root_path,
        access_log=options.access_log,
        warm_up=True,
        through=options.through,
        keys=_keys(options.api_key_file, "--api-key-file"),
        metrics_keys=_keys(options.metrics_key_file, "--metrics-key-file"),
        hosts=options.allow_host if options.host in _LOOPBACK else None,
    )


def _glossaries(options: ServeOptions) -> list[Terms]:
    """The terms of each bundle, in the order of the bundles."""
    from glassformer.data.terms import read_terms

    files, bundles = options.glossary, options.bundles
    if files and len(files) != len(bundles):
        raise UsageError(
            f"--glossary: {counted(len(files), 'file')} for {counted(len(bundles), 'bundle')}:"
            " give one for each bundle, in the bundles' order"
        )
    return [read_terms(file) for file in files]


def _keys(path: Path | None, option: str) -> list[str]:
    if path is None:
        return []
    keys = [line.strip() for line in read_lines(path) if line.strip()]
    if not keys:
        raise InputError(f"{option} {path} holds no key: write one key a line")
    return keys


def _reread_keys(options: ServeOptions, settings: Settings) -> None:
    """Read the files of keys again; the server keeps the keys of an unreadable file."""
    try:
        keys = _keys(options.api_key_file, "--api-key-file")
        metrics_keys = _keys(options.metrics_key_file, "--metrics-key-file")
    except (InputError, OSError) as error:
        print(f"error: {error}; the earlier keys stay", file=sys.stderr, flush=True)
    else:
        settings.keys[:], settings.metrics_keys[:] = keys, metrics_keys
