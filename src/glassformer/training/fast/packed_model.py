"""The model and the loss of a packed batch (:mod:`~glassformer.training.fast.packed`).

Attention gets the ends of the sentences in the place of a mask: a query reads the keys of its own
sentence. The batch has the positions, because each sentence begins at position 0.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.data.batches import Batch
from glassformer.model.attention import fused_attention
from glassformer.model.fast.stock import check_stock
from glassformer.model.forms import NormedPositions
from glassformer.model.masks import subsequent_mask
from glassformer.model.transformer import Transformer
from glassformer.training.fast.loss import projected_cross_entropy
from glassformer.training.optimiser import MixedPrecision

__all__ = ["PackedBatch", "not_packed", "packed_attention", "packed_copy", "packed_losses"]

_HEAD = 8  # a GPU's kernels take heads of a multiple of 8 numbers


@dataclass(frozen=True)
class PackedBatch(Batch):
    """A batch of one row in int32; ``tokens`` and ``target_tokens`` count no filler.

    ``ends`` has a row for the target and one for the source: the begin of the first sentence, then
    the end of each.
    """

    source_positions: Int[Tensor, " src_len"]
    target_positions: Int[Tensor, " tgt_len"]
    ends: Int[Tensor, "2 ends"]


def packed_attention(
    query: Float[Tensor, "1 heads q_len d_head"],
    key: Float[Tensor, "1 heads k_len d_head"],
    value: Float[Tensor, "1 heads k_len d_head"],
    ends: Int[Tensor, "2 ends"],
    *,
    longest: int,
    causal: bool = False,
) -> tuple[Float[Tensor, "1 heads q_len d_head"], None]:
    """Equation 1 for each sentence of a packed batch, of which none is longer than ``longest``.

    ``ends`` has a row for the queries and a row for the keys. A CPU takes one sentence after
    another; a GPU takes all of them in one kernel.

    >>> x, ends = torch.arange(3.0).view(1, 1, 3, 1), torch.tensor([[0, 1, 3], [0, 1, 3]])
    >>> packed_attention(0 * x, 0 * x, x, ends, longest=2)[0].flatten().tolist()
    [0.0, 1.5, 1.5]
    """
    if query.device.type == "cpu":
        q_lengths, k_lengths = ends.diff().tolist()
        keys, values = key.split(k_lengths, 2), value.split(k_lengths, 2)
        outputs = [
            fused_attention(q, k, v, subsequent_mask(q.size(2)) if causal else None)[0]
            for q, k, v in zip(query.split(q_lengths, 2), keys, values, strict=True)
            if q.size(2)
        ]
        return torch.cat(outputs, dim=2), None
    q, k, v = (each[0].transpose(0, 1) for each in (query, key, value))
    if query.dtype == torch.bfloat16:  # the flash kernel knows 16 bits alone
        flash = torch.ops.aten._flash_attention_forward
        output = flash(q, k, v, *ends, longest, longest, 0.0, causal, False)[0]
    else:
        efficient = torch.ops.aten._efficient_attention_forward
        sentences = (None, *ends, longest, longest)  # None: no bias
        output = efficient(q[None], k[None], v[None], *sentences, 0.0, int(causal), True)[0][0]
    return output.transpose(0, 1)[None], None


def packed_copy(
    model: Transformer, *, longest: int, mixed_precision: MixedPrecision | None = None
) -> tuple[Transformer, Callable[[], None]]:
    """A copy of ``model`` for packed batches, and a call that renews the copy.

    The copy shares the weights with the model, or has the weights of ``mixed_precision``.
    """
    if mixed_precision:
        working, renew = mixed_precision(model)
    else:
        shared: dict[int, Any] = {id(x): x for x in chain(model.parameters(), model.buffers())}
        working, renew = copy.deepcopy(model, shared).train(), lambda: None
    attention = partial(packed_attention, longest=longest)
    block: Any  # ModuleList has no type parameter
    for block in working.encoder.blocks:
        block.self_attention.sublayer.attention = attention
    for block in working.decoder.blocks:
        block.self_attention.sublayer.attention = partial(attention, causal=True)
        block.cross_attention.sublayer.attention = attention
    return working, renew


def packed_losses(
    model: Transformer, batch: PackedBatch, *, smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Both sums of ``batch_losses``, of a :func:`packed_copy`."""
    batch = batch.to(model.output_weight.device)
    ends_of_target, ends_of_source = (batch.ends[side].expand(2, -1) for side in (0, 1))
    positions = model.source_positions, batch.source_positions
    embedded = _embedded(model.source_embedding, batch.source, *positions)
    memory = model.encoder(embedded, ends_of_source)
    positions = model.target_positions, batch.target_positions
    embedded = _embedded(model.target_embedding, batch.target, *positions)
    states = model.decoder(embedded, memory, ends_of_target, batch.ends)
    labels = batch.labels[0].long()
    return projected_cross_entropy(
        states[0],
        model.output_weight,
        model.output_bias,
        labels.masked_fill(labels == model.config.pad_id, -1),
        smoothing=smoothing,
    )


def _embedded(
    embedding: nn.Module, tokens: Tensor, encoding: Any, positions: Tensor
) -> Float[Tensor, "1 len d_model"]:
    """The embeddings of a row of tokens, with the encodings of their positions."""
    embedded = embedding(tokens)
    plain: Any = encoding.positions if isinstance(encoding, NormedPositions) else encoding
    rows = plain.table.index_select(0, positions + plain.offset)
    embedded = plain.dropout(embedded + rows.to(embedded))
    return encoding.dropout(encoding.norm(embedded)) if plain is not encoding else embedded


def not_packed(model: Transformer) -> str:
    """The reason why a model cannot read packed batches; empty if it can."""
    config = model.config
    if config.attention_dropout:
        return f"packed ones have no attention_dropout, here {config.attention_dropout:g}"
    if (d_head := config.d_model // config.num_heads) % _HEAD:
        return f"packed ones need heads of a multiple of {_HEAD} numbers, here {d_head}"
    try:
        check_stock(model, "a packed batch")
    except TypeError as error:
        return str(error)
    return ""
