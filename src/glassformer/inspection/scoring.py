"""How probable a model holds a given target: piece by piece, for one source or for many."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.data.words import words
from glassformer.inspection.trace.schema import Erased, Piece
from glassformer.model.masks import padding_mask
from glassformer.model.transformer import Transformer

__all__ = ["erased_words", "following", "log_probabilities", "scored"]

_NUMBERS_AT_ONCE = 1 << 24  # 64 MiB


@torch.no_grad()
def following(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    target: Sequence[int],
    *,
    causal: bool = True,
) -> Float[Tensor, "sources tgt_len vocab"]:
    """log p(any piece | those before it in the target, source) at each place of one target.

    Sources end in their end symbol. The target is what is written, so without the start symbol;
    without ``causal`` each place sees all others, and so what it is to write.
    """
    config, device = model.config, model.output_weight.device
    rows = [torch.tensor(ids, device=device) for ids in sources]
    source = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=config.pad_id)
    read = torch.tensor([[config.bos_id, *target[:-1]]], device=device).expand(len(rows), -1)
    mask = None if causal else padding_mask(read, config.pad_id)
    return model(source, read, target_mask=mask).float().log_softmax(dim=-1)


def log_probabilities(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    target: Sequence[int],
    *,
    causal: bool = True,
) -> Float[Tensor, "sources tgt_len"]:
    """Those of the target's own pieces; see :func:`following`. Of any number of sources."""
    own = torch.tensor(target)[None, :, None]
    at_once = max(1, _NUMBERS_AT_ONCE // (len(target) * model.config.target_vocab_size))
    found = []
    for first in range(0, len(sources), at_once):
        table = following(model, sources[first : first + at_once], target, causal=causal).cpu()
        found.append(table.gather(-1, own.expand(len(table), -1, -1))[..., 0])
    return torch.cat(found)


def scored(
    model: Transformer, source: Sequence[int], target: Sequence[int]
) -> tuple[list[float], list[int]]:
    """Of each target piece its log-probability and its place among all pieces; 0 = the best."""
    table = following(model, [source], target)[0].cpu()
    own = table.gather(-1, torch.tensor(target)[:, None])  # (tgt_len, 1)
    return own[:, 0].tolist(), (table > own).sum(dim=-1).tolist()


def erased_words(
    model: Transformer,
    source: Sequence[Piece],
    text: str,
    target: Sequence[int],
    *,
    most: int | None = None,
) -> Erased:
    """Take each word of the source away in turn: by how much every target piece changes.

    With ``most``, only the words of the first so many pieces.

    ``source`` is all that the encoder reads, the end symbol too; the pieces behind the gap move
    up, as if the word had never been written.
    """
    spans = words(text)
    there = sorted({piece.word for piece in source[:most] if piece.word is not None})
    without = [[piece.id for piece in source if piece.word != word] for word in there]
    numbers = log_probabilities(model, [[piece.id for piece in source], *without], target)
    changes = numbers[1:] - numbers[:1]
    return Erased(
        [text[slice(*spans[word])] for word in there],
        [spans[word] for word in there],
        changes.tolist(),
        changes.sum(dim=1).tolist(),
    )
