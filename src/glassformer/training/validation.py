"""Scores during training: loss on validation pairs, BLEU of their greedy translations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from glassformer.data.batches import Batch
from glassformer.data.corpus import Pair
from glassformer.data.preprocessing import Preprocessing
from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.engine import SearchOptions
from glassformer.evaluation import corpus_scores
from glassformer.model.transformer import Transformer
from glassformer.text_engine import TextEngine
from glassformer.training.loss import choose_losses
from glassformer.training.optimiser import NotFiniteError

__all__ = ["Validation", "mean_loss", "validate"]

_AS_TYPED = Preprocessing()


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
    preprocessing: Preprocessing = _AS_TYPED,
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
    sources = [pair.source for pair in pairs]
    engine = TextEngine.of(model, tokenizers, preprocessing=preprocessing)
    translations = engine.translate(sources, SearchOptions(beam=1))
    texts = [translation.text for translation in translations]
    model.train()
    scores = corpus_scores(texts, [pair.target for pair in pairs], language=language, quick=True)
    return Validation(loss, scores.bleu, scores.chrf, scores.exact_match, texts)


def mean_loss(model: Transformer, batches: Sequence[Batch], *, plain: bool = False) -> float:
    """Mean of -log p over the target tokens, end symbols counted; ``plain``: by the plain form."""
    losses = choose_losses(smoothing=0.0, plain=plain)
    with torch.inference_mode():
        total = sum(losses(model, batch)[1].item() for batch in batches)
    return total / max(sum(batch.target_tokens for batch in batches), 1)
