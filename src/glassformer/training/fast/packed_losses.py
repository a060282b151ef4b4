"""The loss of a packed batch (:mod:`~glassformer.training.fast.packed`).

The masks show a token the tokens of its own sentence alone. The batch has the positions, because
each sentence begins at position 0. All else is the model's own.
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.data.batches import Batch
from glassformer.model.fast.stock import check_stock
from glassformer.model.forms import NormedPositions
from glassformer.model.masks import subsequent_mask
from glassformer.model.transformer import Transformer
from glassformer.training.fast.loss import projected_cross_entropy

__all__ = ["PackedBatch", "not_packed", "packed_losses"]


@dataclass(frozen=True)
class PackedBatch(Batch):
    """A batch in int32 whose rows hold several sentences; ``tokens`` counts no empty place.

    ``source_pairs`` and ``target_pairs`` have the number of each token's pair, from 1; an empty
    place has 0.
    """

    source_positions: Int[Tensor, "batch src_len"]
    target_positions: Int[Tensor, "batch tgt_len"]
    source_pairs: Int[Tensor, "batch src_len"]
    target_pairs: Int[Tensor, "batch tgt_len"]


def packed_losses(
    model: Transformer, batch: PackedBatch, *, smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Both sums of ``batch_losses`` over the target tokens."""
    batch = batch.to(model.output_weight.device)
    embedded = _embedded(
        model.source_embedding, batch.source, model.source_positions, batch.source_positions
    )
    memory = model.encoder(embedded, _of_one_pair(batch.source_pairs, batch.source_pairs))
    embedded = _embedded(
        model.target_embedding, batch.target, model.target_positions, batch.target_positions
    )
    past = subsequent_mask(batch.target.size(1), device=embedded.device)
    of_target = _of_one_pair(batch.target_pairs, batch.target_pairs) & past
    of_memory = _of_one_pair(batch.target_pairs, batch.source_pairs)
    states = model.decoder(embedded, memory, of_target, of_memory)
    labels = batch.labels.flatten().long()
    return projected_cross_entropy(
        states.flatten(0, 1),
        model.output_weight,
        model.output_bias,
        labels.masked_fill(labels == model.config.pad_id, -1),
        smoothing=smoothing,
    )


def _of_one_pair(
    queries: Int[Tensor, "batch q_len"], keys: Int[Tensor, "batch k_len"]
) -> Bool[Tensor, "batch 1 q_len k_len"]:
    """True for a query and a key of one pair. An empty place reads all keys, so that it has one."""
    one_pair = queries[:, :, None] == keys[:, None, :]
    return (one_pair | (queries == 0)[:, :, None])[:, None]


def _embedded(
    embedding: nn.Module,
    tokens: Int[Tensor, "batch len"],
    encoding: Any,
    positions: Int[Tensor, "batch len"],
) -> Float[Tensor, "batch len d_model"]:
    """The embeddings of the tokens, with the encodings of their positions."""
    embedded = embedding(tokens)
    plain: Any = encoding.positions if isinstance(encoding, NormedPositions) else encoding
    rows = plain.table.index_select(0, positions.flatten() + plain.offset)
    embedded = plain.dropout(embedded + rows.to(embedded).view_as(embedded))
    return encoding.dropout(encoding.norm(embedded)) if plain is not encoding else embedded


def not_packed(model: Transformer) -> str:
    """The reason why a model cannot read packed batches; empty if it can."""
    try:
        check_stock(model, "a packed batch")
    except TypeError as error:
        return str(error)
    return ""
