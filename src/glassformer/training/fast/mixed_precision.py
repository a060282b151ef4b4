"""Gradients by bfloat16 or float16 products, for float32 weights.

A bfloat16 number has 8 significant bits. The 8 bits suffice for a product's operands, but not for
a weight that changes by a thousandth of itself. So the optimiser, validation and checkpoints use
the model in float32. The gradients come from a bfloat16 copy, into which each update rounds the
model anew (Micikevicius et al. 2018, section 3.1). ``torch.autocast`` rounds at each use instead,
and keeps results between the products in float32. With ``torch.autocast``, an update of ``tiny`` on
one CPU thread takes 1.2 times as long.

A copy in float16 is for a GPU without bfloat16. Its gradients need a loss scale
(:mod:`glassformer.training.loss_scale`).
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.model.embeddings import ScaledEmbedding
from glassformer.model.transformer import Transformer

__all__ = ["working_copy"]


def working_copy(
    model: Transformer, dtype: torch.dtype = torch.bfloat16
) -> tuple[Transformer, Callable[[], None]]:
    """A copy of ``model`` in ``dtype`` for the gradients, and a call that renews the copy.

    Each gradient of the copy adds to the model's gradient in float32. The copy shares embeddings
    and output matrix with the model. An update reads few rows of the embeddings, and
    :func:`~glassformer.training.fast.loss.projected_cross_entropy` rounds the output matrix.
    """
    shared: dict[int, Any] = {
        id(table): _RoundedEmbedding(table, dtype)
        for table in (model.source_embedding, model.target_embedding)
    }
    shared |= {id(part): part for part in (model.output, model.output_bias)}
    masters = _blocks(model)
    rounded: list[Tensor] = [nn.Parameter(master.detach().to(dtype)) for master in masters]
    for master, weight in zip(masters, rounded, strict=True):
        weight.register_post_accumulate_grad_hook(partial(_hand_over, master))
        shared[id(master)] = weight
    working: Transformer = copy.deepcopy(model, shared).train()

    def refresh() -> None:
        with torch.no_grad():
            torch._foreach_copy_(rounded, masters)

    return working, refresh


class _RoundedEmbedding(nn.Module):
    """The model's embedding table, whose vectors enter the blocks in fewer bits."""

    def __init__(self, table: ScaledEmbedding, dtype: torch.dtype) -> None:
        super().__init__()
        self.table, self.dtype = table, dtype

    @property
    def weight(self) -> Float[Tensor, "vocab d_model"]:
        return self.table.weight

    def forward(self, tokens: Int[Tensor, "batch len"]) -> Float[Tensor, "batch len d_model"]:
        return self.table(tokens).to(self.dtype)


def _blocks(model: Transformer) -> list[Tensor]:
    """The weights between the embeddings and the output matrix."""
    parts = (model.source_positions, model.target_positions, model.encoder, model.decoder)
    return [weight for part in parts for weight in part.parameters()]


def _hand_over(master: Tensor, weight: Tensor) -> None:
    assert weight.grad is not None
    gradient = weight.grad.to(master.dtype)
    master.grad = gradient if master.grad is None else master.grad.add_(gradient)
    weight.grad = None
