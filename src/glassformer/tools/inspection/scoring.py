"""The probability that a model gives to each piece of a target, for one source or many."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.batches import pad_rows
from glassformer.data.words import words
from glassformer.model.transformer import Transformer
from glassformer.tools.inspection.trace.schema import Erased, Piece

__all__ = ["erased_words", "log_probabilities"]

_NUMBERS_AT_ONCE = 1 << 24  # 64 MiB


@torch.no_grad()
def log_probabilities(
    model: Transformer, sources: Sequence[Sequence[int]], target: Sequence[int]
) -> Float[Tensor, "sources tgt_len"]:
    """log p(piece | the pieces before it, source) of each target piece, for any number of sources.

    Sources and target end in their end symbol; the target has no start symbol.
    """
    config, device = model.config, model.output_weight.device
    read = torch.tensor([[config.bos_id, *target[:-1]]], device=device)
    written = torch.tensor(target, device=device)[None, :, None]
    at_once = max(1, _NUMBERS_AT_ONCE // (len(target) * config.target_vocab_size))
    parts = []
    for first in range(0, len(sources), at_once):
        source = pad_rows(sources[first : first + at_once], config.pad_of_source).to(device)
        logits = model(source, read.expand(len(source), -1)).float()
        chosen = logits.log_softmax(dim=-1).gather(-1, written.expand(len(source), -1, -1))
        parts.append(chosen[..., 0].cpu())
    return torch.cat(parts)


def erased_words(
    model: Transformer, source: Sequence[Piece], text: str, target: Sequence[int], *, most: int
) -> Erased:
    """Erase each word of the source in turn, and measure the change of every target piece.

    ``source`` is all that the encoder reads, the end symbol included; the pieces behind the gap
    move up. Only the words of the first ``most`` pieces are erased.
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
