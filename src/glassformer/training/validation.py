"""Scores during training: loss on validation pairs, BLEU of their greedy translations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch

from glassformer.data.batches import Batch
from glassformer.data.corpus import Pair
from glassformer.data.splitting import Segments, joined, segments_of
from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.batched import Search, decode_sentences
from glassformer.decoding.greedy import greedy
from glassformer.decoding.protocols import Hypothesis, Vocabulary
from glassformer.evaluation import corpus_scores
from glassformer.model.fast.choice import decoder_of
from glassformer.model.transformer import Transformer
from glassformer.training.loss import choose_losses
from glassformer.training.optimiser import NotFiniteError

__all__ = [
    "Validation",
    "greedy_texts",
    "mean_loss",
    "searched",
    "texts_of",
    "translations",
    "validate",
]


@dataclass(frozen=True)
class Validation:
    """Loss in nats a target token, without smoothing; BLEU and chrF++; the translations."""

    loss: float
    bleu: float
    chrf: float
    exact_match: float
    translations: list[str]


def validate(
    model: Transformer,
    pairs: Sequence[Pair],
    batches: Sequence[Batch],
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    language: str | None = None,
    plain: bool = False,
) -> Validation:
    """Score ``pairs``, whose batches are ``batches``. The model is left in training mode.

    :class:`NotFiniteError` if the loss is not finite: such a model translates nothing.
    """
    model.eval()
    loss = mean_loss(model, batches, plain=plain)
    if not math.isfinite(loss):
        raise NotFiniteError(f"loss {loss}")
    translations = greedy_texts(model, [pair.source for pair in pairs], tokenizers)
    model.train()
    scores = corpus_scores(
        translations, [pair.target for pair in pairs], language=language, quick=True
    )
    return Validation(loss, scores.bleu, scores.chrf, scores.exact_match, translations)


def greedy_texts(
    model: Transformer, sources: Sequence[str], tokenizers: tuple[Tokenizer, Tokenizer]
) -> list[str]:
    """The greedy translation of each source."""
    search = partial(greedy, vocabulary=Vocabulary.of(tokenizers[1]))
    return translations(model, sources, tokenizers, search=search)


def translations(
    model: Transformer,
    sources: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    search: Search,
) -> list[str]:
    """The best hypothesis of each source as text; a blank source gives an empty translation."""
    segments, beams = searched(model, sources, tokenizers[0], search=search)
    return texts_of(segments, [best for best, *_ in beams], tokenizers[1])


def searched(
    model: Transformer, sources: Sequence[str], tokenizer: Tokenizer, *, search: Search
) -> tuple[Segments, list[list[Hypothesis]]]:
    """The segments of the sources, and the hypotheses of ``search`` for each segment."""
    segments = segments_of(sources, tokenizer)
    beams = decode_sentences(
        decoder_of(model),
        segments.ids,
        search=search,
        device=next(model.parameters()).device,
        vocabulary=Vocabulary.of(tokenizer),
        cores=torch.get_num_threads(),
    )
    return segments, beams


def texts_of(
    segments: Segments, hypotheses: Sequence[Hypothesis], tokenizer: Tokenizer
) -> list[str]:
    """The translation of each source, from one hypothesis for each segment."""
    texts = tokenizer.decode_batch([hypothesis.tokens for hypothesis in hypotheses])
    return [joined([texts[place] for place in span]) for span in segments.spans]


def mean_loss(model: Transformer, batches: Sequence[Batch], *, plain: bool = False) -> float:
    """Mean of -log p over the target tokens, end symbols counted; ``plain``: by the plain form."""
    losses = choose_losses(smoothing=0.0, plain=plain)
    with torch.inference_mode():
        total = sum(losses(model, batch)[1].item() for batch in batches)
    return total / max(sum(batch.target_tokens for batch in batches), 1)
