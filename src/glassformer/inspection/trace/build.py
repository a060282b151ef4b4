"""One translation, taken apart: what page, plots and tests read.

The answer is searched for as the translator does it, and watched. Then the model reads source and
answer once more, as in training, with every sublayer captured: that gives the same numbers as
decoding step by step, for the causal mask hides from each position all that comes later.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch

from glassformer.config import BEAM
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import words
from glassformer.decoding.beam import penalty
from glassformer.decoding.protocols import Hypothesis
from glassformer.errors import UsageError
from glassformer.inspection.attention_of import TranslatorParts
from glassformer.inspection.beam_graph import Watch, beam_graph
from glassformer.inspection.capture import capture
from glassformer.inspection.figure1 import figure1
from glassformer.inspection.scoring import erased_words, scored
from glassformer.inspection.trace import parts as trace_parts
from glassformer.inspection.trace.parts import Run
from glassformer.inspection.trace.query import Sentence, length_penalty_of, prefix_ids, sentence
from glassformer.inspection.trace.schema import (
    VERSION,
    Answer,
    Asked,
    Bounds,
    Changes,
    Piece,
    Reference,
    Side,
    Trace,
)
from glassformer.inspection.trace.subwords import pieces_of
from glassformer.model.masks import padding_mask, target_mask

__all__ = ["Changes", "Trace", "trace"]

_PIECES = 64  # of a side that are shown
_VECTOR_NUMBERS = 1 << 19  # of all queries, keys and values together: 2 MiB
_NO_CHANGES = Changes()


def trace(
    translator: TranslatorParts,
    text: str,
    *,
    beam: int = BEAM,
    forced_prefix: str | Sequence[int] | None = None,
    length_penalty: float | None = None,
    top: int = 8,
    reference: str | None = None,
    changes: Changes = _NO_CHANGES,
) -> Trace:
    """Translate ``text`` and show all that happened on the way.

    ``forced_prefix``: what the answer must begin with, as text or as ids of pieces. To go on from
    another candidate of step ``i``, give the ids that were written before it and the candidate's;
    the end symbol may be the last. ``length_penalty``: None for the translator's own. ``top``:
    candidates a step. ``reference``: a translation held for right, to see what became of it.
    ``changes``: what is switched off.

    The translator itself is not touched: others can use it at the same time. Raises InputError for
    a text that cannot be, UsageError for a wrong call, ValueError for a beam or length penalty out
    of its range.
    """
    if top < 1:
        raise UsageError(f"top {top}: expected at least 1 candidate a step")
    if length_penalty is None:
        length_penalty = length_penalty_of(translator)
    prefix = prefix_ids(translator, forced_prefix)
    asked = Asked(text, beam, length_penalty, prefix, top, reference, changes)
    question = sentence(translator, asked)
    line = None if reference is None else question.ended(reference)
    watch = question.watch(line or ())
    found = question.search(watch)
    judged = None if line is None else _reference(question, line, watch, found)
    return _assembled(question, watch, found, judged)


def _assembled(
    question: Sentence, watch: Watch, found: Hypothesis, reference: Reference | None
) -> Trace:
    asked, tokenizer = question.asked, question.tokenizer
    text, written = tokenizer.decode(found.tokens), question.written(found)
    run = _run(question, written)
    source = question.source[: run.source_shown]
    target = pieces_of(tokenizer, written, text)[: run.target_shown]
    shown = written[: run.target_shown]
    vectors = run.vector_numbers <= _VECTOR_NUMBERS
    return Trace(
        version=VERSION,
        languages=_languages(question.translator),
        asked=asked,
        source=Side(asked.text, source, source, words(asked.text)),
        target=Side(text, target, [_start(tokenizer), *target[:-1]], words(text)),
        answer=Answer(text, found.log_probability, found.score, found.finished),
        bounds=_bounds(len(question.source), len(written), reference, vectors),
        figure=figure1(question.model, len(question.source), len(written)),
        masks=trace_parts.masks(run),
        positions=trace_parts.positions(run),
        attention=trace_parts.attention_traces(run, vectors=vectors),
        sublayers=trace_parts.sublayer_norms(run),
        steps=trace_parts.steps(run, top=asked.top, forced=len(asked.forced_prefix)),
        beam=beam_graph(watch, found, tokenizer, alpha=asked.length_penalty, steps=_PIECES),
        erased=erased_words(
            question.model, question.source, asked.text, shown, most=run.source_shown
        ),
        reference=None if reference is None else _shortened(reference),
    )


def _reference(
    question: Sentence, line: tuple[int, ...], watch: Watch, found: Hypothesis
) -> Reference:
    """What became of the reference in this search."""
    tokenizer, text = question.tokenizer, question.asked.reference or ""
    values, ranks = scored(question.model, question.source_ids, line)
    total = math.fsum(values)
    score = total / penalty(len(line), question.asked.length_penalty)
    fall = watch.fall()
    verdict: Literal["found", "search", "model"] = "search" if score > found.score else "model"
    if text == tokenizer.decode(found.tokens):  # perhaps in other pieces
        verdict = "found"
    return Reference(
        text=text,
        pieces=pieces_of(tokenizer, line, text),
        log_probabilities=values,
        ranks=ranks,
        log_probability=total,
        score=score,
        fell_off=None if fall is None else fall.step,
        fell_rank=None if fall is None else fall.rank,
        margin=None if fall is None else fall.margin,
        verdict=verdict,
    )


def _shortened(reference: Reference) -> Reference:
    """The reference with no more pieces than are shown of a side."""
    return replace(
        reference,
        pieces=reference.pieces[:_PIECES],
        log_probabilities=reference.log_probabilities[:_PIECES],
        ranks=reference.ranks[:_PIECES],
    )


@torch.no_grad()
def _run(question: Sentence, written: tuple[int, ...]) -> Run:
    """The model on source and answer, every sublayer captured."""
    device, pad = question.model.output_weight.device, question.model.config.pad_id
    read = torch.tensor([[question.tokenizer.bos_id, *written[:-1]]], device=device)
    mask = target_mask(read, pad)
    if question.asked.changes.causal_off:
        mask = padding_mask(read, pad).expand_as(mask)
    with capture(question.model) as seen:
        question.model(torch.tensor([question.source_ids], device=device), read, target_mask=mask)
    shown = [min(length, _PIECES) for length in (len(question.source), len(written))]
    return Run(question.model, question.tokenizer, seen, written, mask, *shown)


def _start(tokenizer: Tokenizer) -> Piece:
    name = tokenizer.id_to_piece(tokenizer.bos_id)
    return Piece(tokenizer.bos_id, name, name, 0, 0, None)


def _languages(translator: TranslatorParts) -> tuple[str, str] | None:
    """A bundle knows them, and a translator has a bundle; other parts need not."""
    found = getattr(getattr(translator, "bundle", translator), "languages", None)
    return None if found is None else (str(found[0]), str(found[1]))


def _bounds(source: int, target: int, reference: Reference | None, vectors: bool) -> Bounds:
    counts = {"source": source, "target": target}
    if reference is not None:
        counts["reference"] = len(reference.pieces)
    left_out = [
        f"the {side} has {count} pieces; the first {_PIECES} are shown"
        for side, count in counts.items()
        if count > _PIECES
    ]
    if not vectors:
        left_out.append(
            "queries, keys and values are not stored: they are more than"
            f" {_VECTOR_NUMBERS:,} numbers"
        )
    return Bounds(_PIECES, source, target, left_out)
