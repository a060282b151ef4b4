"""The probability that a model gives to each piece of a target, for one source or many."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.words import words
from glassformer.model.transformer import Transformer
from glassformer.tools.inspection.trace.schema import Erased, Piece
from glassformer.translator import target_log_probabilities

__all__ = ["erased_words", "log_probabilities"]

_NUMBERS_AT_ONCE = 1 << 24  # float32 numbers in 64 MiB


def log_probabilities(
    model: Transformer, sources: Sequence[Sequence[int]], target: Sequence[int]
) -> Float[Tensor, "sources tgt_len"]:
    """The log-probability of each piece of one target, for any number of sources."""
    at_once = max(1, _NUMBERS_AT_ONCE // (len(target) * model.config.target_vocab_size))
    groups = [sources[first : first + at_once] for first in range(0, len(sources), at_once)]
    return torch.cat([target_log_probabilities(model, g, [target] * len(g)) for g in groups])


def erased_words(
    model: Transformer, source: Sequence[Piece], text: str, target: Sequence[int], *, most: int
) -> Erased:
    """Erase each word of the source in turn, and measure the change of every target piece.

    ``source`` holds all pieces that the encoder reads, with the end symbol. The pieces behind an
    erased word move up. The function erases only words among the first ``most`` pieces.
    """
    spans = words(text)
    erased = sorted({piece.word for piece in source[:most] if piece.word is not None})
    without = [[piece.id for piece in source if piece.word != word] for word in erased]
    scores = log_probabilities(model, [[piece.id for piece in source], *without], target)
    changes = scores[1:] - scores[:1]
    return Erased(
        [text[slice(*spans[word])] for word in erased],
        changes.tolist(),
        changes.sum(dim=1).tolist(),
    )
