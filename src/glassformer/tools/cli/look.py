"""``glassformer look``: a page that shows every step of a translation."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode

from pydantic import Field

from glassformer.config import BEAM, MOST_BEAM, MOST_LENGTH_PENALTY, EngineName
from glassformer.support.errors import UsageError, missing_extra
from glassformer.support.files import check_output, write_atomically
from glassformer.support.progress import shown_progress, working
from glassformer.tools.cli.loading import LoadingOptions, parts_of, wait_asleep

if TYPE_CHECKING:
    from glassformer.data.terms import Terms
    from glassformer.translator import Translator

__all__ = ["OPTIONS", "LookOptions", "run"]


class LookOptions(LoadingOptions):
    """Look inside the translator in BUNDLE, on a local page or in one file to mail."""

    bundle: Path = Field(title="BUNDLE")
    """Directory of a trained translator."""
    text: str | None = None
    """First sentence to show; None means an example from the bundle, if the bundle has one."""
    out: Path | None = None
    """Write the page for the text into this one .html file, which needs no server."""
    live: bool = False
    """Put the whole translator into the file of --out, which then translates any text offline."""
    exact: Literal["float16", "float32"] | None = None
    """Number format of the weights with --live. None means int8, with a quarter of the bytes."""
    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Hypotheses of the beam search; 1 means greedy search."""
    length_penalty: float | None = Field(None, ge=0, le=MOST_LENGTH_PENALTY)
    """The paper's alpha (section 6.1); None means the bundle's alpha."""
    glossary: Path | None = None
    """File of terms, as for 'glassformer translate'; the page marks the terms."""
    port: int = Field(0, ge=0, le=65535)
    """Port of the page on 127.0.0.1; 0 means any free port."""
    browser: bool = True
    """Open the page in the browser."""
    parts: Path | None = None
    """Folder of 'glassformer learn'. Your finished lessons run in place of the program's parts. The
    command runs the folder's code, so give your own folder."""
    threads: int = Field(0, ge=0, le=1024)
    """Number of CPU threads; 0 means one for a d_model below 512, or else all."""
    engine: EngineName = "torch"
    """Engine of the page's own translations; torch computes all that the page shows of a model."""


OPTIONS = LookOptions


def run(options: LookOptions) -> int:
    """Write the file, or serve the page until an interrupt.

    Raises:
        UsageError: two options do not fit together, or the translator is too large for a page.
        InputError: BUNDLE is no bundle, the glossary has a faulty line, or the port is taken.
        OSError: the file cannot be written.
    """
    _check(options)
    wait_asleep()
    from glassformer.data.terms import NO_TERMS, read_terms
    from glassformer.parts import FAST

    with parts_of(options.bundle, options.parts, FAST) as parts:
        terms = NO_TERMS if options.glossary is None else read_terms(options.glossary)
        [translator] = options.load_to_serve([options.bundle], parts).values()
        if options.out is not None:
            return _write(options, translator, terms, options.out)
        return _serve(options, translator, terms)


def _check(options: LookOptions) -> None:
    if options.text is not None:
        if not options.text.strip():
            raise UsageError(f"--text {options.text!r}: expected a sentence")
        if any("\ud800" <= character <= "\udfff" for character in options.text):
            raise UsageError(f"--text {options.text!r}: expected UTF-8")
    if options.live and options.out is None:
        raise UsageError("--live writes a file: give its name with --out")
    others = options.glossary, options.parts, options.length_penalty
    if options.live and (others != (None, None, None) or options.beam != BEAM):
        raise UsageError("--live takes no --glossary, --parts, --beam or --length-penalty")
    if options.exact and not options.live:
        raise UsageError(f"--exact {options.exact}: only a page with --live has weights")
    if options.out is None:
        return
    if options.out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--out {options.out}: expected a name that ends in .html")
    check_output("--out", options.out)


@shown_progress()
def _write(options: LookOptions, translator: Translator, terms: Terms, out: Path) -> int:
    from glassformer.tools.inspection.trace.build import trace
    from glassformer.tools.inspection.trace.schema import Query
    from glassformer.tools.web.living_page import write_page
    from glassformer.tools.web.look.single_file import build_page
    from glassformer.tools.web.look.stored import stored_answers

    bundle = translator.bundle
    text = options.text or next(iter(bundle.examples), "")
    if not text and not options.live:
        raise UsageError(
            "--out writes the page of one sentence, and the bundle has no example: give the"
            " sentence with --text"
        )
    if options.live:
        quantization, texts = options.exact or "int8", [text] if text else []
        with working("writing the page"):
            notes = write_page(bundle, out, face="look", quantization=quantization, texts=texts)
        size = f"{out.stat().st_size / 1e6:.1f} MB"
        print(f"wrote {out}: {size}, the whole translator", *notes, sep="\nnote: ")
        return 0
    question = Query(text, options.length_penalty, beam=options.beam)
    record = trace(bundle, question, glossary=terms)
    for left_out in record.bounds.left_out:
        print(left_out)
    page = build_page(stored_answers(bundle, record), title=text)
    write_atomically(out, page.encode())
    print(f"wrote {out}: {len(page.encode()) / 1e6:.1f} MB, {record.answer.text}")
    return 0


def _serve(options: LookOptions, translator: Translator, terms: Terms) -> int:
    try:
        from glassformer.tools.web.server import Settings, create_app, listen, serve
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "FastAPI", "serve") from None

    settings = Settings(beam=options.beam, glossaries=[terms])
    app = create_app({options.bundle.name: translator}, settings)
    listener = listen("127.0.0.1", options.port)
    address = _address(listener.getsockname()[1], options)
    print(f"{address}\nCtrl-C ends it.", flush=True)
    if options.browser:
        threading.Timer(0.2, webbrowser.open, [address]).start()  # when the server answers
    serve(app, listener, settings)
    return 0


def _address(port: int, options: LookOptions) -> str:
    state = {"beam": options.beam, "penalty": options.length_penalty, "text": options.text}
    settings = {name: value for name, value in state.items() if value is not None}
    return f"http://127.0.0.1:{port}/look/#{urlencode(settings)}"
