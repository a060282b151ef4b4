"""A walk through the shapes of multi-head attention (section 3.2.2), for any sizes."""

from dataclasses import dataclass

import torch

from glassformer.model.attention import MultiHeadAttention

__all__ = ["ShapeStep", "attention_shapes"]


@dataclass(frozen=True)
class ShapeStep:
    """One tensor on the way, with the size of each of its axes."""

    tensor: str
    how: str
    axes: dict[str, int]

    def __str__(self) -> str:
        shape = ", ".join(f"{axis} {size}" for axis, size in self.axes.items())
        return f"{self.tensor:<9} {self.how:<28} ({shape})"


def attention_shapes(
    d_model: int, num_heads: int, *, batch: int, q_len: int, k_len: int
) -> list[ShapeStep]:
    """Each tensor of :meth:`MultiHeadAttention.with_weights`, in the order of the sums.

    The shapes are those of a real pass, on torch's ``meta`` device: it computes shapes alone, so
    any size takes no memory.

    >>> for step in attention_shapes(512, 8, batch=2, q_len=5, k_len=7)[-3:]:
    ...     print(step)
    heads     weights · values             (batch 2, heads 8, q_len 5, d_head 64)
    joint     merge(heads)                 (batch 2, q_len 5, d_model 512)
    output    joint Wᴼ                     (batch 2, q_len 5, d_model 512)
    """
    with torch.device("meta"):
        attention = MultiHeadAttention(d_model, num_heads)
        query, key = torch.empty(batch, q_len, d_model), torch.empty(batch, k_len, d_model)
    projected = attention.query(query)
    queries = attention.split(projected)
    keys, values = attention.project_keys_and_values(key, key)
    scores = queries @ keys.mT
    heads = scores.softmax(-1) @ values
    joint = attention.merge(heads)
    wide, narrow = "batch {} d_model", "batch heads {} d_head"
    return [
        _step("query", "", query, wide.format("q_len")),
        _step("key", "value has the same shape", key, wide.format("k_len")),
        _step("projected", "query W^Q, all heads", projected, wide.format("q_len")),
        _step("queries", "split(projected)", queries, narrow.format("q_len")),
        _step("keys", "split(key W^K)", keys, narrow.format("k_len")),
        _step("values", "split(value W^V)", values, narrow.format("k_len")),
        _step("scores", "queries · keysᵀ / √d_head", scores, "batch heads q_len k_len"),
        _step("weights", "softmax(scores) over k_len", scores, "batch heads q_len k_len"),
        _step("heads", "weights · values", heads, narrow.format("q_len")),
        _step("joint", "merge(heads)", joint, wide.format("q_len")),
        _step("output", "joint Wᴼ", attention.output(joint), wide.format("q_len")),
    ]


def _step(tensor: str, how: str, value: torch.Tensor, axes: str) -> ShapeStep:
    return ShapeStep(tensor, how, dict(zip(axes.split(), value.shape, strict=True)))
