"""A translator as one HTML file: its weights, its tokenizers, and an engine that runs them.

The file opens without a network and without an installation. The engine is JavaScript
(``static/engine``); each weight is an int8 number with a scale for its row, or a float. The page is
either the translator's page or the page that looks inside.
"""

import base64
import random
import unicodedata
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch
from pydantic_core import to_jsonable_python
from torch import Tensor

from glassformer.alignment.align import Heads
from glassformer.bundle import Bundle, fact_text
from glassformer.config import EXTRA_LENGTH
from glassformer.data.normaliser import INVISIBLE
from glassformer.data.preprocessing import LONGEST_SOURCE, SINGLE_SENTENCES, Preprocessing
from glassformer.data.protected import SPANS
from glassformer.data.splitting import BREAKS, has_ordinals
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import is_unspaced
from glassformer.model.transformer import Transformer
from glassformer.support.errors import UsageError, check_choice
from glassformer.support.files import write_atomically
from glassformer.support.tensors import load_weights, weights
from glassformer.text_engine import RUNS
from glassformer.tools.inspection.capture import capture
from glassformer.tools.inspection.figure1 import figure1
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.interchange.stock import require_stock
from glassformer.tools.web.js_patterns import js_pattern
from glassformer.tools.web.look.single_file import Face, build_page

__all__ = ["about", "cutting", "rounded", "unassigned", "write_page"]

_BYTES = {"int8": 1, "float16": 2, "float32": 4}  # bytes of one weight
_SMALL, _MOST = 25_000_000, 150_000_000  # bounds of a file in bytes
_LARGEST = 127  # int8 from -127 to 127
_SCALE = ".scale"
_SOURCE, _TARGET = -1, -2  # stand in figure 1's shapes for the lengths, which the page fills in
_CHECKS = 3  # texts with stored numbers, which the engine must reproduce
_PIECES = 12  # pieces of a random text


def write_page(
    bundle: Bundle, out: Path, *, face: Face, quantization: str, texts: Sequence[str] = ()
) -> list[str]:
    """Write the translator as one file; return notes to print.

    Raises UsageError if the quantization is unknown, the model has own parts, a tokenizer's units
    are words or characters, or the file is too large for a browser.
    """
    check_choice("quantization", quantization, _BYTES)
    require_stock(bundle, "a page")
    if not all(tokenizer.cuts_subwords for tokenizer in bundle.tokenizers):
        raise UsageError(
            "a page cannot run a tokenizer of whole words or single characters, and this model has"
            " one: use 'glassformer serve'"
        )
    count = sum(weight.numel() for weight in bundle.model.parameters())
    if (size := 4 / 3 * count * _BYTES[quantization]) > _MOST:  # in base64
        raise UsageError(
            f"a page of this model has {size / 1e6:,.0f} MB, and browsers open at most"
            f" {_MOST / 1e6:.0f}: use 'glassformer serve'"
        )
    translator, stored = rounded(bundle, quantization)
    title = " → ".join(bundle.languages) if bundle.languages else ""
    page = build_page(about(translator, texts), title=title, face=face, weights=stored).encode()
    write_atomically(out, page)
    return ["the file is too large for most mail and some phones"] * (len(page) > _SMALL)


def rounded(bundle: Bundle, quantization: str) -> tuple[Bundle, bytes]:
    """The bundle with the page's rounded weights, and their safetensors file."""
    stored: dict[str, np.ndarray[Any, Any]] = {}
    values: dict[str, Tensor] = {}
    for name, weight in weights(bundle.model).items():
        weight = weight.float().cpu()
        if quantization == "int8" and weight.dim() == 2 and "positions" not in name:
            scale = weight.abs().amax(dim=1) / _LARGEST
            scale = torch.where(scale > 0, scale, 1.0)
            whole = (weight / scale[:, None]).round().clamp(-_LARGEST, _LARGEST)
            stored[name], stored[name + _SCALE] = whole.to(torch.int8).numpy(), scale.numpy()
            values[name] = whole * scale[:, None]
        elif quantization == "float16" and weight.dim() == 2:
            stored[name] = weight.half().numpy()
            values[name] = weight.half().float()
        else:
            stored[name], values[name] = weight.numpy(), weight
    model = Transformer(bundle.model.config)
    load_weights(model, values.items(), origin=Path("the page"))
    return replace(bundle, model=model.eval().requires_grad_(False)), safetensors.numpy.save(stored)


def about(bundle: Bundle, texts: Sequence[str]) -> dict[str, Any]:
    """The page's record of a rounded translator, as JSON values.

    ``texts`` are sentences that the page shows before the bundle's examples. The record holds
    the trace of the first sentence. ``checks`` hold numbers that the page's engine must reproduce.
    """
    source, target = bundle.tokenizers
    joint = source.serialized == target.serialized and source.prefix == target.prefix
    lengths = bundle.source_lengths
    from_language, to_language = bundle.languages or (None, None)
    examples = (text for text in bundle.examples if _reads(bundle, text))
    texts = list(dict.fromkeys([*texts, *examples]))[:_CHECKS]
    first = trace(bundle, texts[0]) if texts else None
    return {
        "languages": bundle.languages,
        "config": bundle.model.config.model_dump(mode="json"),
        "tokenizers": [_tokenizer(source), None if joint else _tokenizer(target)],
        "length_penalty": bundle.length_penalty,
        "extra_length": EXTRA_LENGTH,
        "reading": {
            "normalisation": (
                {"invisible": INVISIBLE, "unknown": unassigned()}
                if bundle.normalisation == "text"
                else None
            ),
            "together": lengths and lengths.has_several * lengths.longest,
            "longest": min(LONGEST_SOURCE, bundle.model.config.longest_source),
            "breaks": [js_pattern(place.pattern) for place in BREAKS],
            "numbers": bundle.preprocessing.reads_numbers,
            "ordinals": has_ordinals(from_language),
            "gap": "" if is_unspaced(to_language) else " ",
            "cutting": cutting(bundle.preprocessing),
            "spans": js_pattern(SPANS),
        },
        "longest": lengths.longest if lengths and lengths != SINGLE_SENTENCES else None,
        "runs": list(map(js_pattern, RUNS)),
        "alignment": Heads.of(bundle.alignment, bundle.model.config).as_dict(),
        "figure": [asdict(box) for box in figure1(bundle.model, _SOURCE, _TARGET)],
        "parameters": sum(weight.numel() for weight in bundle.model.parameters()),
        "facts": {name: fact_text(value) for name, value in bundle.about.items()},
        "examples": list(texts),
        "first": to_jsonable_python(first),
        "checks": _checks(bundle, [*texts, *_random(bundle)][:_CHECKS]),
    }


def _tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    model = base64.b64encode(tokenizer.serialized).decode()
    return {"model": model, "prefix": tokenizer.prefix, "known": tokenizer.known}


def cutting(preprocessing: Preprocessing) -> dict[str, Any] | None:
    """The patterns by which the preprocessing cuts lines, in JavaScript's form."""
    patterns = preprocessing.patterns()
    if patterns is None:
        return None
    names = {"spans", "row", "rowCell", "cell", "code", "mark", "sentence", "colon"}
    names |= {"oneLetter", "torn", "tornPart", "lone"}
    return patterns | {name: js_pattern(str(patterns[name])) for name in names}


@cache
def unassigned() -> str:
    """The characters unassigned in Python's Unicode, as a class of a regular expression."""
    lacks = [unicodedata.category(chr(code)) == "Cn" for code in range(0x110000)] + [False]
    edges = [code for code in range(0x110000) if lacks[code] != lacks[code - 1]]
    pairs = zip(edges[::2], [*edges[1::2], 0x110000], strict=False)
    return "".join(f"\\u{{{first:x}}}-\\u{{{end - 1:x}}}" for first, end in pairs)


def _random(bundle: Bundle) -> list[str]:
    """Texts of random pieces, seeded by the vocabulary's size, of which the model reads a part."""
    tokenizer = bundle.source_tokenizer
    draw = random.Random(tokenizer.vocab_size)
    ids = range(tokenizer.vocab_size)
    drawn = [tokenizer.decode(draw.choices(ids, k=_PIECES)).strip() for _ in range(100)]
    return list(islice((text for text in drawn if _reads(bundle, text)), _CHECKS))


def _reads(bundle: Bundle, text: str) -> bool:
    """Whether the model reads a part of a text."""
    cut = bundle.preprocessing.segments
    return any(cut([text], bundle.source_tokenizer, limit=LONGEST_SOURCE, protect=True))


def _checks(bundle: Bundle, texts: Sequence[str]) -> list[dict[str, Any]]:
    exact = deepcopy(bundle.model).double()
    return [_check(bundle, exact, text) for text in texts]


def _check(bundle: Bundle, exact: Transformer, text: str) -> dict[str, Any]:
    """The numbers of a text that the page's engine must reproduce.

    The numbers are the pieces, their log-probabilities (``steps``), and a number for each vector in
    the model (``sums``). ``exact`` computes the numbers in float64. ``rounding`` holds the largest
    errors of Python's float32: of vectors, as a share of their length, and of log-probabilities.
    """
    traced, tokenizer = trace(bundle, text), bundle.source_tokenizer
    source = [*tokenizer.encode(traced.asked.text), tokenizer.eos_id]
    target = [piece.id for piece in traced.target.pieces]
    read = [piece.id for piece in traced.target.read]
    sums, lengths, steps = _numbers(exact, source, read, target)
    rounded_sums, _, rounded_steps = _numbers(bundle.model, source, read, target)
    shares = [
        ((rounded_sums[name] - sums[name]).abs() / lengths[name].clamp(min=1)).max().item()
        for name in sums
    ]
    return {
        "text": traced.asked.text,
        "source": source,
        "target": target,
        "sums": {name: values.tolist() for name, values in sums.items()},
        "steps": steps.tolist(),
        "rounding": [max(shares), (rounded_steps - steps).abs().max().item()],
    }


@torch.no_grad()
def _numbers(
    model: Transformer, source: list[int], read: list[int], target: list[int]
) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
    """A number and a length of each vector by sublayer, and the log-probabilities of ``target``.

    The number is a weighted sum of the vector's elements, so that any other element or order
    changes the number.
    """
    with capture(model) as sublayers:
        logits = model(torch.tensor([source]), torch.tensor([read]))[0]
    vectors = {name: torch.cat([each.added[0], each.output[0]]) for name, each in sublayers.items()}
    weights = torch.arange(1, model.config.d_model + 1, dtype=torch.float64).cos()
    sums = {name: each.double() @ weights for name, each in vectors.items()}
    lengths = {name: each.double().norm(dim=-1) for name, each in vectors.items()}
    logs = logits.log_softmax(-1).gather(-1, torch.tensor(target)[:, None])[:, 0]
    return sums, lengths, logs.double()
