"""``glassformer serve``: translators as a page, and as a server for LibreTranslate's clients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from glassformer.config import BEAM, MOST_BEAM, Options
from glassformer.errors import InputError, UsageError, missing_extra

if TYPE_CHECKING:
    from glassformer.translator import Translator
    from glassformer.web.server import Settings

__all__ = ["OPTIONS", "ServeOptions", "run"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ServeOptions(Options):
    """Serve the translators in the BUNDLEs, one for each language pair.

    The page is at /, what the model does with a sentence at /look/. POST /translate, GET /languages
    and GET /health are LibreTranslate's. SIGTERM or Ctrl+C: what is in flight is answered first.
    """

    bundles: tuple[Path, ...] = Field(min_length=1, title="BUNDLE [BUNDLE ...]")
    """Directories of trained translators."""
    host: str = "127.0.0.1"
    """Where to listen; 0.0.0.0: others reach it too, so think of --api-key-file."""
    port: int = Field(5000, ge=0, le=65535)
    """0: any free one."""
    allow_host: tuple[str, ...] = ()
    """More names under which it answers while it listens on 127.0.0.1, as behind a proxy."""
    api_key_file: Path | None = None
    """A key a line; whoever shows none of them is refused."""
    max_chars: int = Field(20_000, ge=1, le=1_000_000)
    """Characters of a request."""
    max_requests: int = Field(128, ge=1, le=10_000)
    """Requests at once; more are told to come again (503)."""
    timeout: float = Field(60.0, gt=0, le=3600)
    """Seconds after which a request is given up (503)."""
    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Hypotheses that are followed at once; 1: greedy."""
    engine: Literal["torch", "ctranslate2"] = "torch"
    """ctranslate2: the same translations, faster (extra export)."""
    quantization: str = "float32"
    """What ctranslate2 computes in: float32, int8, …; int8 is faster and differs a little."""
    device: str = "auto"
    """cpu, cuda, or auto."""
    threads: int = Field(0, ge=0, le=1024)
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
