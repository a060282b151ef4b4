"""Builds the trace of one translation.

First the translator's own search runs, observed by a watch. Then the model reads source and answer
once more, as in training, with every sublayer captured. The numbers equal those of step-by-step
decoding, because the causal mask hides later positions.
"""

import math
from collections.abc import Mapping, Sequence

import torch

from glassformer.alignment.align import Heads
from glassformer.bundle import Bundle
from glassformer.data.terms import Terms
from glassformer.data.words import words
from glassformer.decoding.beam import penalty
from glassformer.decoding.protocols import Hypothesis
from glassformer.model.masks import padding_mask, target_mask
from glassformer.support.errors import UsageError, check_kind
from glassformer.tools.inspection.beam_graph import Watch, beam_graph
from glassformer.tools.inspection.capture import capture
from glassformer.tools.inspection.figure1 import figure1
from glassformer.tools.inspection.scoring import erased_words, log_probabilities
from glassformer.tools.inspection.trace import captured
from glassformer.tools.inspection.trace.captured import CapturedRun
from glassformer.tools.inspection.trace.query import Sentence
from glassformer.tools.inspection.trace.schema import (
    VERSION,
    Answer,
    Bounds,
    Head,
    Query,
    Reference,
    Side,
    Trace,
    Verdict,
)
from glassformer.tools.inspection.trace.subwords import pieces_of
from glassformer.translator import Translator

__all__ = ["trace"]

_PIECES = 64  # greatest number of pieces in a trace, on each side
_VECTOR_NUMBERS = 1 << 19  # numbers in all queries, keys and values, which take 2 MiB


def trace(
    translator: Translator | Bundle,
    question: str | Query,
    *,
    glossary: Mapping[str, str | Sequence[str]] | Terms | None = None,
) -> Trace:
    """Translate a text and record every step, map and candidate on the way.

    Args:
        translator: other threads can use the translator meanwhile.
        question: the text, or the text with the options of the search and the changes.
        glossary: target terms by source terms, as in ``Translator.translate``. The trace shows
            the search without terms, and the places of the terms in the answer.

    Raises:
        InputError: a blank text, or a reference that is too long.
        UsageError: an option that does not fit the model or the text.
        ValueError: a beam or length penalty out of its range.
    """
    bundle = translator.bundle if isinstance(translator, Translator) else translator
    check_kind(bundle, Bundle, wants="trace takes a translator (see Translator.load)")
    question = Query(question) if isinstance(question, str) else question
    if question.top < 1:
        raise UsageError(f"top {question.top}: expected at least 1 candidate a step")
    terms = glossary if isinstance(glossary, Terms) else Terms.of(glossary or {})
    sentence = Sentence.of(bundle, question, terms)
    eos_id, reference = sentence.tokenizer.eos_id, sentence.reference_ids()
    watch = Watch(question.beam, eos_id, reference)
    return _assembled(sentence, watch, sentence.search(watch))


def _assembled(sentence: Sentence, watch: Watch, best: Hypothesis) -> Trace:
    bundle, question, tokenizer = sentence.bundle, sentence.question, sentence.tokenizer
    text = tokenizer.decode(best.tokens)
    written = (*best.tokens, tokenizer.eos_id) if best.finished else best.tokens
    run = _run(sentence, written)
    source = sentence.source[: run.source_shown]
    [start] = pieces_of(tokenizer, [tokenizer.bos_id], "")
    target = pieces_of(tokenizer, written, text)[: run.target_shown]
    heads = Heads.of(bundle.alignment, sentence.model.config)
    has_vectors = run.vector_numbers <= _VECTOR_NUMBERS
    parts = bundle.about.get("parts")  # the owner of the part in each place of the package
    return Trace(
        version=VERSION,
        languages=bundle.languages,
        asked=question,
        source=Side(question.text, source, source, words(question.text)),
        target=Side(text, target, [start, *target[:-1]], words(text)),
        answer=Answer(text, best.log_probability, best.score, best.finished),
        bounds=_bounds(sentence, len(written), has_vectors),
        figure=figure1(
            sentence.model,
            len(sentence.source),
            len(written),
            parts=parts if isinstance(parts, Mapping) else {},
        ),
        masks=captured.masks(run),
        positions=captured.positions(run),
        attention=captured.attention_traces(run, vectors=has_vectors),
        sublayers=captured.sublayer_norms(run),
        steps=captured.steps(
            run,
            top=question.top,
            forced=max(len(sentence.forced), len(tokenizer.prefix_ids)),
        ),
        beam=beam_graph(watch, written, tokenizer, alpha=sentence.alpha, steps=_PIECES),
        erased=erased_words(
            sentence.model,
            sentence.source,
            question.text,
            written[: run.target_shown],
            most=run.source_shown,
        ),
        reference=_reference(sentence, watch, best) if watch.line else None,
        terms=sentence.term_places(text, target),
        aligned=[Head("cross", heads.layer, head) for head in heads.heads],
    )


def _reference(sentence: Sentence, watch: Watch, best: Hypothesis) -> Reference:
    """The reference's probability, and the step at which the search lost the reference."""
    tokenizer, line = sentence.tokenizer, watch.line
    [values] = log_probabilities(sentence.model, [sentence.source_ids], line).tolist()
    total = math.fsum(values[len(tokenizer.prefix_ids) :])  # the prefix is certain in the search
    score = total / penalty(len(line), sentence.alpha)
    step, rank, margin = watch.fall()
    verdict: Verdict = "search" if score > best.score else "model"
    if tokenizer.decode(line) == tokenizer.decode(best.tokens):  # the pieces may differ
        verdict = "found"
    return Reference(
        log_probability=total,
        score=score,
        fell_off=step,
        fell_rank=rank,
        margin=margin,
        verdict=verdict,
    )


@torch.no_grad()
def _run(sentence: Sentence, written: tuple[int, ...]) -> CapturedRun:
    """Run the model on source and answer, with every sublayer captured."""
    model, tokenizer = sentence.model, sentence.tokenizer
    device, pad = model.output_weight.device, model.config.pad_id
    read = torch.tensor([[tokenizer.bos_id, *written[:-1]]], device=device)
    mask = target_mask(read, pad)
    if sentence.question.changes.causal_off:
        mask = padding_mask(read, pad).expand_as(mask)
    with capture(model) as sublayers:
        model(torch.tensor([sentence.source_ids], device=device), read, target_mask=mask)
    shown = [min(length, _PIECES) for length in (len(sentence.source), len(written))]
    return CapturedRun(model, tokenizer, sublayers, written, mask, *shown)


def _bounds(sentence: Sentence, target_length: int, has_vectors: bool) -> Bounds:
    """The numbers of pieces, and the parts that the trace leaves out."""
    source_length = len(sentence.source)
    counts = {"source": source_length, "target": target_length}
    left_out = [
        f"the {side} has {count} pieces; the first {_PIECES} are shown"
        for side, count in counts.items()
        if count > _PIECES
    ]
    if sentence.segments > 1:
        left_out.append(
            f"the text has {sentence.segments} parts, which are translated one by one; the first"
            " is shown"
        )
    if not has_vectors:
        left_out.append(
            "queries, keys and values are not stored, because they have more than"
            f" {_VECTOR_NUMBERS:,} numbers"
        )
    return Bounds(source_length, target_length, left_out)
