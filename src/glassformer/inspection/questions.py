"""Questions that weights alone cannot answer: change something, and see what the model then says.

Each runs the model on one target that is given (teacher forcing), before and after the change.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.inspection.trace_schema import Erased, Piece
from glassformer.model.transformer import Transformer

__all__ = ["erased", "log_probabilities", "scored"]

_LOGITS_AT_ONCE = 1 << 24  # 64 MiB


@torch.no_grad()
def log_probabilities(
    model: Transformer, sources: Sequence[Sequence[int]], target: Sequence[int]
) -> Float[Tensor, "sources tgt_len"]:
    """log p(piece | those before it, source), for each source and each piece of one target.

    Sources end in their end symbol. The target is what is written, so without the start symbol.
    """
    config, device = model.config, model.output_weight.device
    read = torch.tensor([[config.bos_id, *target[:-1]]], device=device)
    written = torch.tensor(target, device=device)[None, :, None]
    at_once = max(1, _LOGITS_AT_ONCE // (len(target) * config.target_vocab_size))
    found = []
    for first in range(0, len(sources), at_once):
        rows = [torch.tensor(ids) for ids in sources[first : first + at_once]]
        source = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=config.pad_id).to(
            device
        )
        following = model(source, read.expand(len(rows), -1)).float().log_softmax(dim=-1)
        found.append(following.gather(-1, written.expand(len(rows), -1, -1))[..., 0].cpu())
    return torch.cat(found)


@torch.no_grad()
def scored(
    model: Transformer, source: Sequence[int], target: Sequence[int]
) -> tuple[list[float], list[int]]:
    """Of each target piece its log-probability after those before it, and its place among all."""
    config, device = model.config, model.output_weight.device
    read = torch.tensor([[config.bos_id, *target[:-1]]], device=device)
    following = model(torch.tensor([source], device=device), read)[0].float().log_softmax(dim=-1)
    own = following.gather(-1, torch.tensor(target, device=device)[:, None])  # (tgt_len, 1)
    return own[:, 0].tolist(), (following > own).sum(dim=-1).tolist()


def erased(model: Transformer, source: Sequence[Piece], text: str, target: Sequence[int]) -> Erased:
    """Take each word of the source away in turn: by how much every target piece changes.

    ``source`` is all that the encoder reads, the end symbol too; the pieces behind the gap move
    up, as if the word had never been written.
    """
    words = sorted({piece.word for piece in source if piece.word is not None})
    without = [[piece.id for piece in source if piece.word != word] for word in words]
    whole = [piece.id for piece in source]
    numbers = log_probabilities(model, [whole, *without], target)
    changes = numbers[1:] - numbers[:1]
    spans = [
        (min(piece.start for piece in mine), max(piece.end for piece in mine))
        for word in words
        for mine in [[piece for piece in source if piece.word == word]]
    ]
    return Erased(
        [text[start:end].strip() for start, end in spans],
        spans,
        changes.tolist(),
        changes.sum(dim=1).tolist(),
    )
