"""``glassformer serve``: translators as a page, and as a server for LibreTranslate's clients."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from pydantic import Field

from glassformer.config import BEAM, MOST_BEAM
from glassformer.errors import InputError, UsageError, missing_extra

if TYPE_CHECKING:
    from glassformer.translator import Translator
    from glassformer.web.server import Settings

__all__ = ["OPTIONS", "ServeOptions", "run"]

_NONE = "(default: none)"
_BUNDLES = tyro.conf.arg(metavar="BUNDLE", help_behavior_hint="(required)")
_NAMES = tyro.conf.arg(metavar="NAME [NAME ...]", help_behavior_hint=_NONE)
_FILE = tyro.conf.arg(metavar="FILE", help_behavior_hint=_NONE)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class ServeOptions:
    """Serve the translators in the BUNDLEs, one for each language pair.

    The page is at /, what the model does with a sentence at /look/. POST /translate, GET /languages
    and GET /health are LibreTranslate's. SIGTERM or Ctrl+C: what is in flight is answered first.
    """

    bundles: Annotated[tuple[Path, ...], tyro.conf.Positional, _BUNDLES, Field(min_length=1)]
    """Directories of trained translators."""
    host: str = "127.0.0.1"
    """Where to listen; 0.0.0.0: others reach it too, so think of --api-key-file."""
    port: Annotated[int, Field(ge=0, le=65535)] = 5000
    """0: any free one."""
    allow_host: Annotated[tuple[str, ...], _NAMES] = ()
    """More names under which it answers while it listens on 127.0.0.1, as behind a proxy."""
    api_key_file: Annotated[Path | None, _FILE] = None
    """A key a line; whoever shows none of them is refused."""
    max_chars: Annotated[int, Field(ge=1, le=1_000_000)] = 20_000
    """Characters of a request."""
    max_requests: Annotated[int, Field(ge=1, le=10_000)] = 128
    """Requests at once; more are told to come again (503)."""
    timeout: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Seconds after which a request is given up (503)."""
    beam: Annotated[int, Field(ge=1, le=MOST_BEAM)] = BEAM
    """Hypotheses that are followed at once; 1: greedy."""
    engine: Literal["torch", "ctranslate2"] = "torch"
    """ctranslate2: the same translations, faster (extra export)."""
    quantization: str = "float32"
    """What ctranslate2 computes in: float32, int8, …; int8 is faster and differs a little."""
    device: str = "auto"
    """cpu, cuda, or auto."""
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """CPU threads; 0: all."""


OPTIONS = ServeOptions


def run(options: ServeOptions) -> int:
    """Load, listen, say where, and serve until a signal comes.

    Raises:
        UsageError: an option is out of its range, or two bundles have one language pair.
        InputError: a bundle or the file of keys is none, the place is taken, or fastapi is absent.
    """
    try:
        from glassformer.web.server import create_app, listen, serve
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "fastapi", "serve") from error
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    settings = _settings(options)
    place = listen(options.host, options.port)  # before the long work that would be vain
    with place:
        app = create_app(_translators(options), settings)
        host, port = place.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        print(f"http://{shown}:{port}/ translates until Ctrl+C", flush=True)
        serve(app, place)
    return 0


def _settings(options: ServeOptions) -> Settings:
    from glassformer.web.security import RequestLimits
    from glassformer.web.server import Settings

    if options.allow_host and options.host not in _LOOPBACK:
        raise UsageError(
            f"--allow-host belongs to a server on 127.0.0.1; on {options.host} any name will do"
        )
    return Settings(
        beam=options.beam,
        limits=RequestLimits(
            max_chars=options.max_chars,
            max_requests=options.max_requests,
            timeout=options.timeout,
        ),
        keys=_keys(options.api_key_file) if options.api_key_file else (),
        hosts=[name.lower() for name in options.allow_host] if options.host in _LOOPBACK else None,
    )


def _keys(path: Path) -> list[str]:
    try:
        keys = [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--api-key-file {path}: cannot be read ({error})") from error
    if not keys:
        raise InputError(f"--api-key-file {path}: holds no key; write one a line")
    return keys


def _translators(options: ServeOptions) -> dict[str, Translator]:
    from glassformer.threads import torch_threads
    from glassformer.translator import Translator

    # This thread only loads. With helpers of its own beside those of the thread that translates
    # they would be more than the cores, and then wait for each other asleep: half the speed.
    with torch_threads(1):
        return {
            str(path): Translator.load(
                path,
                device=options.device,
                engine=options.engine,
                quantization=options.quantization,
            )
            for path in options.bundles
        }
