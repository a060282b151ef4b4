"""``glassformer backtranslate``: makes training pairs from text in the target language alone."""

from __future__ import annotations

import json
import sys
from itertools import islice
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from glassformer.config import MOST_BEAM
from glassformer.data.lines import read_lines
from glassformer.support.errors import InputError, UsageError, counted
from glassformer.support.files import check_output, open_atomically
from glassformer.support.progress import shown_progress
from glassformer.tools.cli.loading import LoadingOptions

if TYPE_CHECKING:
    from glassformer.text_engine import Translation
    from glassformer.translator import Translator

__all__ = ["OPTIONS", "BacktranslateOptions", "run"]

_AT_ONCE = 1024  # lines that the translator sorts by length and translates together


class BacktranslateOptions(LoadingOptions):
    """Translate TEXT, in your target language, back into your source language with BUNDLE. Write
    pairs for 'train --also', each as translation, tab, line.

    For a model from English to German, BUNDLE translates German to English (Sennrich et al. 2016,
    "Improving NMT Models with Monolingual Data"). A second equal command continues a stopped one.
    """

    bundle: Path = Field(title="BUNDLE")
    """Directory of a translator from the target language into the source language."""
    text: Path = Field(title="TEXT")
    """Text in the target language, plain or gzip, with a sentence a line."""
    out: Path = Field()
    """File of pairs to write, with the ending .tsv."""
    beam: int = Field(1, ge=1, le=MOST_BEAM)
    """Hypotheses of the beam search; 1 means greedy search."""
    sample: bool = False
    """Draw translations at random, for more varied sources (Edunov et al. 2018)."""
    confidence: float = Field(0.0, ge=0, lt=1)
    """Write only pairs with at least this confidence, the geometric mean of the probabilities of
    the translation's subwords."""
    max_lines: int | None = Field(None, ge=1)
    """Greatest number of lines to translate; None means all lines."""
    seed: int = Field(1, ge=0)
    """Seed of --sample."""


OPTIONS = BacktranslateOptions


@shown_progress()
def run(options: BacktranslateOptions) -> int:
    """Translate the text, and print the number of pairs.

    OUT.partial has a line for each translated line of TEXT, and becomes OUT at the end.

    Raises:
        UsageError: an option is out of range, or two options do not go together.
        InputError: BUNDLE is no bundle, or TEXT cannot be read.
    """
    from glassformer.translator import Sampling

    _check(options)
    options.set_threads()
    translator = options.load(options.bundle)
    partial = options.out.with_name(options.out.name + ".partial")
    done = _lines_done(partial, options)
    if done:
        print(f"continuing after line {done:,}", file=sys.stderr)
    lines = islice(read_lines(options.text), done, options.max_lines)
    with partial.open("ab") as file:
        for texts in iter(lambda: list(islice(lines, _AT_ONCE)), []):
            sampling = Sampling(seed=options.seed + done) if options.sample else None
            translations = translator.translate(texts, beam=options.beam, sampling=sampling)
            for text, translation in zip(texts, translations, strict=True):
                file.write(_row(text, translation, translator, options).encode())
            file.flush()
            done += len(texts)
    kept = _write_pairs(partial, options.out)
    print(f"{options.out}: {counted(kept, 'pair')} of {counted(done, 'line')}")
    return 0


def _check(options: BacktranslateOptions) -> None:
    if options.sample and options.beam > 1:
        raise UsageError("--sample draws, --beam searches: give one of them")
    if options.out.suffix != ".tsv":
        raise UsageError(f"--out {options.out}: expected a name that ends in .tsv")
    check_output("--out", options.out)


def _lines_done(partial: Path, options: BacktranslateOptions) -> int:
    """The number of translated lines in the partial file, whose first line holds the options."""
    free = {"out", "verify", "engine", "quantization", "device", "threads", "max_lines"}
    head = json.dumps(json.loads(options.model_dump_json(exclude=free))).encode() + b"\n"
    with partial.open("a+b") as file:
        file.seek(0)
        first, count, size = file.readline(), 0, len(head)
        if not head.startswith(first):  # a kill may have cut the head
            raise InputError(
                f"{partial} was begun with other options: remove the file, or give another --out"
            )
        for line in file:
            if line.endswith(b"\n"):  # a kill may have cut the last line
                count, size = count + 1, size + len(line)
        file.truncate(size if first == head else 0)
        if first != head:
            file.write(head)
    return count


def _row(
    text: str, translation: Translation, translator: Translator, options: BacktranslateOptions
) -> str:
    """The pair as a line, or a blank line for a pair that the options exclude."""
    source, target = (" ".join(side.split()) for side in (translation.text, text))
    kept = bool(source and target)
    if kept and options.confidence:
        [(log_probability, tokens)] = translator.log_probabilities([translation])
        kept = exp(log_probability / tokens) >= options.confidence
    return f"{source}\t{target}\n" if kept else "\n"


def _write_pairs(partial: Path, out: Path) -> int:
    """Move the pairs of the finished file to ``out``; return their number."""
    kept = 0
    with partial.open("rb") as lines, open_atomically(out) as file:
        next(lines)
        for line in lines:
            if line.strip():
                file.write(line)
                kept += 1
    partial.unlink()
    return kept
