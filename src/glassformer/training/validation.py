"""Scores during training: the loss on validation pairs, and BLEU of greedy translations.

An early model repeats a word without an end, which would take most of the time of a short training.
So a validation cuts off a translation that becomes far longer than the references.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from glassformer.data.batches import Batch
from glassformer.data.corpus import Pair
from glassformer.data.preprocessing import Preprocessing
from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.engine import SearchOptions
from glassformer.evaluation import corpus_scores, perplexity
from glassformer.model.transformer import Transformer
from glassformer.parts import Parts
from glassformer.text_engine import TextEngine, torch_engine
from glassformer.training.loss import Losses
from glassformer.training.optimiser import NotFiniteError
from glassformer.training.time_limit import Deadline, in_time

__all__ = ["Validation", "ValidationSet", "mean_loss", "validate"]

_AS_TYPED = Preprocessing()
_LONGEST = 2.0  # times the references' length


@dataclass(frozen=True)
class ValidationSet:
    """The validation pairs, as text and as batches, and the language of the target for scores."""

    pairs: Sequence[Pair]
    batches: Sequence[Batch]
    tokenizers: tuple[Tokenizer, Tokenizer]
    language: str | None = None
    preprocessing: Preprocessing = _AS_TYPED

    @property
    def longest_target(self) -> float:
        """The most tokens of a translation for each source token, twice the references' ratio."""
        source = sum(batch.tokens - batch.target_tokens for batch in self.batches)
        target = sum(batch.target_tokens for batch in self.batches)
        return _LONGEST * target / source if source else math.inf


@dataclass(frozen=True)
class Validation:
    """The scores of a validation, and the pairs with the model's translations.

    The loss is in nats per target token, without label smoothing.
    """

    loss: float
    bleu: float
    chrf: float
    exact_match: float
    translations: list[str]
    pairs: Sequence[Pair]

    @property
    def scores(self) -> dict[str, Any]:
        """The fields of a record of ``metrics.jsonl``."""
        return {
            "loss": self.loss,
            "perplexity": perplexity(self.loss),
            "bleu": self.bleu,
            "chrf": self.chrf,
            "exact_match": self.exact_match,
            "pairs": len(self.pairs),
        }


def validate(
    model: Transformer, data: ValidationSet, parts: Parts, deadline: Deadline | None = None
) -> Validation:
    """Score ``data``, or as many pairs of ``data`` as the deadline allows. Leave the model in
    training mode. ``parts`` holds the forms of the loss and of the search.

    Raises :class:`NotFiniteError` without a translation if the loss is not finite.
    """
    deadline = deadline or Deadline()
    model.eval()
    loss = mean_loss(model, data.batches, parts.losses, deadline.share(1 / 2))
    if not math.isfinite(loss):
        raise NotFiniteError(f"loss {loss}")
    engine = torch_engine(model, data.tokenizers, parts, max_length_ratio=data.longest_target)
    translator = TextEngine.of(
        model, data.tokenizers, parts, preprocessing=data.preprocessing, engine=engine
    )
    texts = in_time(
        lambda sources: [t.text for t in translator.translate(sources, SearchOptions(beam=1))],
        [pair.source for pair in data.pairs],
        deadline,
    )
    model.train()
    pairs, translations = [data.pairs[place] for place in texts], list(texts.values())
    references = [pair.target for pair in pairs]
    scores = corpus_scores(translations, references, language=data.language, quick=True)
    return Validation(loss, scores.bleu, scores.chrf, scores.exact_match, translations, pairs)


def mean_loss(
    model: Transformer,
    batches: Sequence[Batch],
    losses: Losses,
    deadline: Deadline | None = None,
) -> float:
    """The mean of -log p over the target tokens, with end symbols.

    If the deadline comes, the mean is over the batches so far.
    """
    total, tokens = 0.0, 0
    with torch.inference_mode():
        for batch in batches:
            total += losses(model, batch, smoothing=0.0)[1].item()
            tokens += batch.target_tokens
            if deadline and deadline.left < 0:
                break
    return total / max(tokens, 1)
