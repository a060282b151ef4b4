"""``glassformer translate``: standard input to standard output, one line for one line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from glassformer.data.lines import decode_line
from glassformer.errors import InputError, UsageError

if TYPE_CHECKING:
    from glassformer.translator import Translation

__all__ = ["OPTIONS", "TranslateOptions", "run"]

_AT_ONCE = 1 << 20  # bytes; what a pipe holds is less, so another program gets its answer at once


@dataclass(frozen=True)
class TranslateOptions:
    """Translate standard input with the translator in BUNDLE, one line for one line."""

    bundle: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="BUNDLE")]
    """The directory of a trained translator."""
    beam: int = 5
    """Hypotheses that are followed at once; 1: greedy."""
    n_best: int = 1
    """Translations of each line. More than 1 prints "line ||| text ||| score" rows."""
    length_penalty: float = 0.6
    """The paper's alpha (section 6.1); 0: none, more: longer translations."""
    prefix: str = ""
    """What each translation must begin with."""
    sample: bool = False
    """Draw translations instead of searching for the best."""
    temperature: float = 1.0
    """When sampling: below 1 nearer to the best, above 1 wilder."""
    top_k: int = 0
    """When sampling: only among so many tokens; 0: all."""
    top_p: float = 1.0
    """When sampling: only among the likeliest tokens of so much probability."""
    seed: int = 1
    """When sampling: the same seed draws the same translations."""
    json: bool = False
    """A JSON object a line: text, score, alternatives."""
    device: str = "auto"
    """cpu, cuda, or auto."""
    threads: int = 0
    """CPU threads; 0: all."""


OPTIONS = TranslateOptions


def run(options: TranslateOptions) -> int:
    """Translate until the input ends; what is complete is answered at once."""
    _check(options)
    import torch

    from glassformer.translator import Sampling, Translator

    if options.threads:
        torch.set_num_threads(options.threads)
    translator = Translator.load(options.bundle, device=options.device)
    sampling = (
        Sampling(options.temperature, options.top_k, options.top_p, options.seed)
        if options.sample
        else None
    )
    number = 0

    def answer(texts: list[str]) -> list[Translation]:
        prefixes = [options.prefix] * len(texts) if options.prefix else None
        return translator.translate(
            texts,
            beam=options.beam,
            n_best=options.n_best,
            length_penalty=options.length_penalty,
            prefixes=prefixes,
            sampling=sampling,
        )

    for lines in _arriving(sys.stdin.fileno()):
        texts, fault = _decoded(lines, number)
        for translation in answer(texts):
            _write(translation, number, options)
            number += 1
        sys.stdout.flush()
        if fault is not None:
            raise fault
    return 0


def _check(options: TranslateOptions) -> None:
    for name, wrong, expected in (
        ("beam", options.beam < 1, "at least 1"),
        ("n_best", options.n_best < 1, "at least 1"),
        ("n_best", not options.sample and options.n_best > options.beam, "at most the beam"),
        ("length_penalty", not 0 <= options.length_penalty < float("inf"), "at least 0"),
        ("temperature", not 0 < options.temperature < float("inf"), "above 0"),
        ("top_k", options.top_k < 0, "at least 0"),
        ("top_p", not 0 < options.top_p <= 1, "above 0 and at most 1"),
        ("threads", options.threads < 0, "at least 0"),
    ):
        if wrong:
            raise UsageError(f"{name} {getattr(options, name)}: expected {expected}")


def _arriving(descriptor: int) -> Iterator[list[bytes]]:
    """Complete lines, as many as have arrived; a last one may lack its line feed."""
    rest = b""
    while block := os.read(descriptor, _AT_ONCE):
        *lines, rest = (rest + block).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _decoded(lines: list[bytes], before: int) -> tuple[list[str], InputError | None]:
    """The lines as text, up to the first that is not UTF-8, and the error that names it."""
    texts: list[str] = []
    for line in lines:
        number = before + len(texts) + 1
        try:
            texts.append(decode_line(line, first=number == 1))
        except UnicodeDecodeError as error:
            return texts, InputError(
                f"standard input, line {number}: not UTF-8 (byte offset {error.start});"
                " the lines before it are translated"
            )
    return texts, None


def _write(translation: Translation, number: int, options: TranslateOptions) -> None:
    """One line of output; a line feed inside a translation would be a second one."""
    found = [(t.text.replace("\n", " "), t.score) for t in (translation, *translation.alternatives)]
    if options.json:
        best, *others = ({"text": text, "score": score} for text, score in found)
        print(json.dumps({**best, "alternatives": others}, ensure_ascii=False))
    elif options.n_best > 1:
        for text, score in found:
            print(f"{number} ||| {text} ||| {score:.4f}")
    else:
        print(found[0][0])
