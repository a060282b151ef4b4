"""``glassformer translate`` writes a line of translation for each line of standard input."""

from __future__ import annotations

import hashlib
import json
import os
import select
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Unpack, cast

from pydantic import Field, model_validator

from glassformer.config import (
    BEAM,
    MOST_BEAM,
    MOST_LENGTH_PENALTY,
    MOST_MIN_LENGTH,
    MOST_NO_REPEAT_NGRAM,
    MOST_REPETITION_PENALTY,
    Markup,
)
from glassformer.data.lines import MAX_LINE_BYTES, decoded
from glassformer.data.words import pharaoh
from glassformer.support.errors import InputError, UsageError, counted
from glassformer.support.progress import shown_progress, working
from glassformer.tools.cli.loading import LoadingOptions, parts_of

if TYPE_CHECKING:
    from glassformer.bundle import Bundle
    from glassformer.data.terms import Terms
    from glassformer.translator import Sampling, TranslateSettings, Translation, Translator

__all__ = ["OPTIONS", "TranslateOptions", "run"]

# Bytes of a block of input. The translator sorts the lines of a block by length and translates the
# lines together; in a long file a block has about a thousand lines.
_AT_ONCE = 1 << 16


class TranslateOptions(LoadingOptions):
    """Translate standard input with the translator in BUNDLE, one line for one line."""

    groups: ClassVar[dict[str, str]] = {
        "beam": "search",
        "sample": "sampling",
        "format": "text and markup",
        "alignment": "output",
        "plain": "parts",
        "source_language": "languages, engine and machine",
    }
    usage_end: ClassVar[str] = "[OPTIONS] < TEXT > TRANSLATION"

    bundle: Path = Field(title="BUNDLE")
    """The directory of a trained translator."""
    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Hypotheses of the beam search; 1 means greedy search."""
    n_best: int = Field(1, ge=1)
    """Print up to N translations of a line, each as: line ||| text ||| score. Lines count from 0.
    The output lacks blank and repeated translations."""
    length_penalty: float | None = Field(None, ge=0, le=MOST_LENGTH_PENALTY)
    """The paper's alpha (section 6.1): 0 means no penalty, and a greater alpha gives longer text.
    None means the alpha of the bundle."""
    repetition_penalty: float = Field(1.0, ge=1, le=MOST_REPETITION_PENALTY)
    """A penalty above 1 lowers the probability of subwords already in the translation."""
    no_repeat_ngram: int = Field(0, ge=0, le=MOST_NO_REPEAT_NGRAM)
    """No sequence of N subwords occurs twice in a translation. 0 allows any repetition."""
    min_length: int = Field(0, ge=0, le=MOST_MIN_LENGTH)
    """Least number of subwords of a translation."""
    prefix: str = ""
    """Text with which each translation begins."""
    glossary: Path | None = None
    """File of terms that translations must hold. A line holds a source term, a tab and a target
    term. Alternative target terms follow after tabs; one of the target terms is enough."""
    sample: bool = False
    """Draw translations instead of searching for the best."""
    temperature: float = Field(1.0, gt=0)
    """Temperature of --sample; draws vary less below 1, and more above 1."""
    top_k: int = Field(0, ge=0)
    """Number of most probable tokens that --sample draws from. 0 means all tokens."""
    top_p: float = Field(1.0, gt=0, le=1)
    """--sample draws from the most probable tokens whose probabilities sum to X."""
    seed: int = 1
    """Seed of --sample, whose draws also depend on a line's number."""
    format: Literal["text", Markup] = "text"
    """Format of the input. Every format but text reads the whole input as one file with markup.
    srt and vtt are subtitles, po is gettext, docx is Word. po and docx need extra documents."""
    protect: bool = True
    """Keep placeholders, tags, addresses, code, emoji, unknown characters, and numbers with units
    unchanged inside a sentence. Signs at the edges stay in any case."""
    split: bool = True
    """Translate each sentence of a line alone, if the bundle has learnt from single sentences.
    A line of several sentences then has one translation, even with --n-best."""
    alignment: bool = False
    """Also print the links between source and target words, as 'text ||| 0-0 1-2'. Words count
    from 0 and end at spaces. --json prints spans of characters instead."""
    as_json: bool = Field(False, alias="json")
    """Print a JSON object for each line, with text, score and alternatives; with --alignment also
    with doubts."""
    plain: bool = False
    """Run only the readable forms of the code, which translate equally but more slowly."""
    parts: Path | None = None
    """Folder of 'glassformer learn' whose parts translate, as with --plain. The command runs the
    folder's code, so give your own folder."""

    @model_validator(mode="after")
    def _options_agree(self) -> TranslateOptions:
        if not self.sample and self.n_best > self.beam:
            raise ValueError(f"--n-best {self.n_best}: expected at most the beam, {self.beam}")
        if self.no_repeat_ngram and self.prefix:
            raise ValueError(
                f"--no-repeat-ngram {self.no_repeat_ngram} could forbid the text of --prefix:"
                " leave one of them out"
            )
        if self.format != "text":
            for field in ("alignment", "as_json", "n_best", "prefix", "sample"):
                if getattr(self, field) != type(self).model_fields[field].default:
                    flag = field.removeprefix("as_").replace("_", "-")
                    raise ValueError(
                        f"--{flag} has no use with --format {self.format}, whose output is one"
                        " file: leave one of them out"
                    )
        return self


OPTIONS = TranslateOptions


def run(options: TranslateOptions) -> int:
    """Translate until the input ends, in bounded memory; write each line at once.

    Raises:
        UsageError: an option is out of range.
        InputError: BUNDLE is no bundle, the glossary has a faulty line, or a line is not UTF-8.
            The output holds the translations of earlier lines.
    """
    if sys.stdin is None:
        raise UsageError("standard input is closed: give the text, as in '… < text'")
    from glassformer.data.terms import read_terms
    from glassformer.parts import FAST, PLAIN

    glossary = None if options.glossary is None else read_terms(options.glossary)
    options.set_threads()
    stock = PLAIN if options.plain else FAST
    shown = nullcontext() if sys.stdout.isatty() else shown_progress()
    with parts_of(options.bundle, options.parts, stock) as parts, shown:
        translator = options.load(options.bundle, parts)
        watched = cast("Translator", watching := _Watching(translator))
        if options.format != "text":
            _, language = translator.bundle.languages or (None, None)
            _translate_file(watched, options, glossary, language=language)
        else:
            threads = translator.engine.threads if translator.engine else 1
            _translate_input(watched, options, glossary, threads=threads)
    if unknown := watching.unknown:
        texts, first = counted(len(unknown), "text"), shorten(unknown[0], 40, placeholder=" …")
        print(
            f"glassformer: the training had hardly any word of {texts}, such as {first!r}:"
            " look at the translation",
            file=sys.stderr,
        )
    return 0


@dataclass(frozen=True)
class _Watching:
    """Translates as ``translator`` does, and collects texts of which the model knows no word."""

    translator: Translator
    unknown: list[str] = field(default_factory=list)

    @property
    def bundle(self) -> Bundle:
        return self.translator.bundle

    def translate(
        self, texts: Sequence[str], **options: Unpack[TranslateSettings]
    ) -> list[Translation]:
        """The translations of ``translator``."""
        from glassformer.alignment.doubts import invented

        translations = self.translator.translate(texts, **options)
        for text, best in zip(texts, translations, strict=True):
            self.unknown.extend([text] * invented(self.bundle, text, best.text))
        return translations


def _translate_file(
    translator: Translator,
    options: TranslateOptions,
    glossary: Terms | None,
    *,
    language: str | None,
) -> None:
    """Translate the whole input as one file; raise InputError for a file of another format."""
    from glassformer.tools.documents.files.formats import read_file, translated_file

    data = sys.stdin.buffer.read()
    try:
        settings = _settings(options, glossary)
        written = translated_file(translator, data, options.format, language=language, **settings)
    except InputError as error:
        raise InputError(f"standard input: {error}") from error
    sys.stdout.buffer.write(written)
    sys.stdout.flush()
    left = read_file(written, options.format).texts if options.format == "po" else []
    if left:
        print(
            f"glassformer: {counted(len(left), 'text')} without a translation, the first is"
            f" {left[0][:60]!r}: the translations are blank, or lack or add a placeholder",
            file=sys.stderr,
        )


def _translate_input(
    translator: Translator, options: TranslateOptions, glossary: Terms | None, *, threads: int
) -> None:
    """Write the translation of each line of standard input to standard output, in order."""
    from glassformer.support.threads import in_order

    descriptor = sys.stdin.fileno()
    lacking: list[int] = []  # the numbers of the lines whose translations lack a term

    def rows(window: _Window) -> str:
        settings = _settings(options, glossary)
        if options.sample:
            settings["sampling"] = _sampling(options, window.first)
        if options.prefix:
            settings["prefixes"] = [options.prefix] * len(window.texts)
        translations = translator.translate(window.texts, **settings)
        numbered = [*enumerate(zip(translations, window.texts, strict=True), start=window.first)]
        if glossary:
            lacking.extend(n for n, (best, text) in numbered if glossary.missing(text, best.text))
        bundle = translator.bundle
        return "".join(_rows(bundle, best, n, options, text) for n, (best, text) in numbered)

    windows = _windows(descriptor)
    if options.sample:  # each line is a batch of its own, so that no other line changes the draw
        windows = (
            _Window(number, [text])
            for window in windows
            for number, text in enumerate(window.texts, start=window.first)
        )
    waits = partial(_input_waits, descriptor)
    for written in in_order(rows, windows, threads=threads, waits=waits):
        # The bytes are UTF-8 with LF, even if the terminal or the system prefers another form.
        sys.stdout.buffer.write(written.encode())
        sys.stdout.flush()
    if lacking:
        print(
            f"glassformer: a term of the glossary has no place in {counted(len(lacking), 'line')},"
            f" the first is line {min(lacking) + 1}: no word of the translation belongs to it",
            file=sys.stderr,
        )


def _settings(options: TranslateOptions, glossary: Terms | None) -> TranslateSettings:
    """The options for the translator, without those of None, for which the bundle has values."""
    from glassformer.translator import TranslateSettings

    names = TranslateSettings.__annotations__.keys() & type(options).model_fields.keys()
    settings = {name: getattr(options, name) for name in names}
    settings["glossary"] = glossary  # the option holds the file's name
    return cast("TranslateSettings", {name: x for name, x in settings.items() if x is not None})


def _sampling(options: TranslateOptions, number: int) -> Sampling:
    """The sampling, with a seed of its own, of line ``number`` (from 0)."""
    from glassformer.translator import Sampling

    mixed = hashlib.blake2b(f"{options.seed} {number}".encode(), digest_size=8)
    seed = int.from_bytes(mixed.digest())
    return Sampling(options.temperature, options.top_k, options.top_p, seed)


class _Window(NamedTuple):
    """Lines for one call of the translator, and the number (from 0) of the first line."""

    first: int
    texts: list[str]


def _windows(descriptor: int) -> Iterator[_Window]:
    """The lines that end in each block of the input; the last line needs no line feed.

    A block inside a long line gives an empty window. A faulty line raises InputError in order.
    """
    number, rest = 0, b""
    about = os.fstat(descriptor)
    size = about.st_size if stat.S_ISREG(about.st_mode) else None
    with working("translating", size) as advance:
        while block := os.read(descriptor, _AT_ONCE):
            whole, feed, rest = (rest + block).rpartition(b"\n")
            for texts in decoded(whole, "standard input", number) if feed else [[]]:
                yield _Window(number, texts)
                number += len(texts)
            if len(rest) > MAX_LINE_BYTES:
                raise InputError(
                    f"standard input, line {number + 1}: the line is longer than"
                    f" {MAX_LINE_BYTES >> 20} MiB: end each text with a line feed"
                )
            advance(len(block))
    for texts in decoded(rest, "standard input", number) if rest else []:
        yield _Window(number, texts)


def _input_waits(descriptor: int) -> bool:
    """Whether a read would wait for input; the answer is True if the system cannot tell."""
    try:
        return not select.select([descriptor], [], [], 0)[0]
    except (OSError, ValueError):  # Windows accepts only sockets
        return True


def _rows(
    bundle: Bundle, translation: Translation, number: int, options: TranslateOptions, source: str
) -> str:
    """The output lines of one source line; a line feed inside a translation becomes a space."""
    hypotheses = [translation, *translation.alternatives]
    if options.as_json:
        best, *others = (_object(bundle, each, options) for each in hypotheses)
        return json.dumps({**best, "alternatives": others}, ensure_ascii=False) + "\n"
    rows = []
    for hypothesis in hypotheses:
        fields = [hypothesis.text.replace("\n", " ")]
        if options.alignment:
            fields.append(pharaoh(source, hypothesis.text, hypothesis.alignment or ()))
        if options.n_best > 1:
            fields = [str(number), *fields, f"{hypothesis.score:.4f}"]
        rows.append(" ||| ".join(fields) + "\n")
    return "".join(rows)


def _object(bundle: Bundle, translation: Translation, options: TranslateOptions) -> dict[str, Any]:
    from glassformer.alignment.doubts import doubts
    from glassformer.translator import Translation

    text = translation.text.replace("\n", " ")
    fields: dict[str, Any] = {"text": text, "score": translation.score}
    if options.alignment:
        links = translation.alignment
        fields["alignment"] = None if links is None else [asdict(link) for link in links]
        reasons = (
            doubts(bundle, part.segment.whole, Translation(part.text, part.score))
            for part in translation.segments
        )
        fields["doubts"] = list(dict.fromkeys(chain.from_iterable(reasons)))
    return fields
