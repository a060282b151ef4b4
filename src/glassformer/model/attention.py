"""Attention (section 3.2): a query compares itself with keys, and reads their values.

Two functions compute equation 1. :func:`scaled_dot_product_attention` is readable and returns the
weights; :func:`fused_attention` computes the sum in one kernel. A test compares both outputs.
"""

import copy
import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.config import check_arguments, check_heads
from glassformer.model.masks import check_mask

__all__ = [
    "Attention",
    "MultiHeadAttention",
    "NoWeightsError",
    "fused_attention",
    "masked_softmax",
    "observe",
    "scaled_dot_product_attention",
]

Attention: TypeAlias = Callable[..., tuple[Tensor, Tensor | None]]
"""``(query, key, value, mask) -> (output, weights)``. A kernel returns None for the weights. The
option ``dropout`` is passed only if weights are dropped."""


def scaled_dot_product_attention(
    query: Float[Tensor, "... q_len d_key"],
    key: Float[Tensor, "... k_len d_key"],
    value: Float[Tensor, "... k_len d_value"],
    mask: Tensor | None = None,
    *,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "... q_len d_value"], Float[Tensor, "... q_len k_len"]]:
    r"""Equation 1: :math:`\mathrm{softmax}(QK^T/\sqrt{d_k})\,V`, and the weights.

    ``mask`` is boolean, True = may attend. Its axes are ``(q_len, k_len)``, or all axes of the
    weights. A query that may attend to no key has weights of zero and reads zeros. The dot
    product of independent components of mean 0 and variance 1 has variance :math:`d_k`. The
    division by :math:`\sqrt{d_k}` makes it 1, so that the softmax does not saturate (section
    3.2.1). ``dropout`` zeroes a share of the weights before the sum, and scales all other weights
    up. The paper drops no weights. The function returns the weights before dropout.

    >>> keys = torch.eye(2)
    >>> output, weights = scaled_dot_product_attention(100 * keys, keys, torch.tensor([[1.], [2.]]))
    >>> output.tolist()
    [[1.0], [2.0]]
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    weights = masked_softmax(scores, mask)
    return F.dropout(weights, dropout) @ value, weights


def masked_softmax(
    scores: Float[Tensor, "... q_len k_len"], mask: Tensor | None = None
) -> Float[Tensor, "... q_len k_len"]:
    """The weights of each query: a softmax over the keys that ``mask`` shows (section 3.2.3).

    >>> scores, mask = torch.zeros(2, 3), torch.tensor([[True, True, False], [False, False, False]])
    >>> masked_softmax(scores, mask).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    """
    if mask is None:
        return scores.softmax(dim=-1)
    check_mask(mask, scores.shape)
    # The lowest finite number: with -inf, a fully masked row would be NaN.
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1).masked_fill(~mask, 0.0)


def fused_attention(
    query: Float[Tensor, "... q_len d_key"],
    key: Float[Tensor, "... k_len d_key"],
    value: Float[Tensor, "... k_len d_value"],
    mask: Tensor | None = None,
    *,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "... q_len d_value"], Tensor | None]:
    """The output of :func:`scaled_dot_product_attention` from one kernel without weights.

    >>> output, weights = fused_attention(torch.zeros(1, 4), torch.zeros(3, 4), torch.ones(3, 2))
    >>> output.tolist(), weights
    ([[1.0, 1.0]], None)
    """
    if key.size(-2) != value.size(-2):  # the kernel would read past the shorter one
        raise ValueError(f"{key.size(-2)} keys and {value.size(-2)} values must be pairs")
    if mask is not None:
        check_mask(mask, (*query.shape[:-1], key.size(-2)))
    if query.requires_grad and query.dtype == torch.bfloat16 and query.device.type == "cpu":
        # The kernel's backward takes 15 times as long in bfloat16 on a CPU.
        return scaled_dot_product_attention(query, key, value, mask, dropout=dropout)
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    return output, None


class MultiHeadAttention(nn.Module):
    r"""Section 3.2.2: several attentions side by side, each in its own subspace.

    :math:`\mathrm{Concat}(\mathrm{head}_1, …, \mathrm{head}_h)W^O`, with :math:`\mathrm{head}_i =
    \mathrm{Attention}(QW_i^Q, KW_i^K, VW_i^V)`. One matrix holds the :math:`h` projections of the
    queries, a second matrix projects the keys, and a third the values. Head :math:`i` takes its own
    ``d_head`` numbers of each projected vector.

    Departure from the paper: the projections have biases, because BART, Marian and ``torch.nn``
    have them. Later releases of the authors' code, tensor2tensor, have none.

    Without a key, ``forward`` is self-attention; without a value, the key is the value too.
    ``forward`` returns the output alone, and :meth:`with_weights` returns output and weights.
    ``attention`` computes equation 1 in each head. ``dropout`` applies to the attention weights
    while training; the paper drops no weights.

    >>> attention = MultiHeadAttention(d_model=8, num_heads=2)
    >>> x = torch.randn(3, 5, 8)
    >>> attention(x).shape
    torch.Size([3, 5, 8])
    >>> attention.with_weights(x)[1].shape
    torch.Size([3, 2, 5, 5])
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        dropout: float = 0.0,
        attention: Attention = scaled_dot_product_attention,
    ) -> None:
        super().__init__()
        sizes = {"d_model": d_model, "num_heads": num_heads}
        check_arguments("MultiHeadAttention", **sizes, dropout=dropout, attention=attention)
        check_heads(d_model, num_heads)
        self.num_heads = num_heads
        self.dropout = dropout
        self.attention = attention
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "batch q_len d_model"],
        key: Float[Tensor, "batch k_len d_model"] | None = None,
        value: Float[Tensor, "batch k_len d_model"] | None = None,
        mask: Tensor | None = None,
    ) -> Float[Tensor, "batch q_len d_model"]:
        key = query if key is None else key
        value = key if value is None else value
        if key.dtype == torch.bool:
            raise TypeError("the key is boolean: give a mask by its name, mask=…")
        return self.attend(query, *self.project_keys_and_values(key, value), mask)

    def attend(
        self,
        query: Float[Tensor, "batch q_len d_model"],
        keys: Float[Tensor, "batch heads k_len d_head"],
        values: Float[Tensor, "batch heads k_len d_head"],
        mask: Tensor | None = None,
    ) -> Float[Tensor, "batch q_len d_model"]:
        """Equation 1 in each head, for projected keys and values."""
        dropped = {"dropout": self.dropout} if self.training and self.dropout else {}
        result = self.attention(self.split(self.query(query)), keys, values, mask, **dropped)
        heads, _ = _pair(self.attention, result)
        return self.output(self.merge(heads))

    def project_keys_and_values(
        self, key: Float[Tensor, "batch k_len d_model"], value: Float[Tensor, "batch k_len d_model"]
    ) -> tuple[
        Float[Tensor, "batch heads k_len d_head"], Float[Tensor, "batch heads k_len d_head"]
    ]:
        """The keys and values of each head, which the decoder's cache keeps."""
        return self.split(self.key(key)), self.split(self.value(value))

    def with_weights(
        self,
        query: Float[Tensor, "batch q_len d_model"],
        key: Float[Tensor, "batch k_len d_model"] | None = None,
        value: Float[Tensor, "batch k_len d_model"] | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch q_len d_model"], Float[Tensor, "batch heads q_len k_len"]]:
        """The output and the weights of each head, without dropout."""
        weights: list[Tensor] = []
        observed = copy.copy(self)  # it shares the projections
        observed.training = False
        observed.attention = observe(self.attention, lambda *run: weights.append(run[-1]))
        output = observed(query, key, value, mask)
        if not weights:
            raise ValueError(f"{type(self).__name__} never calls its attention: it has no weights")
        return output, weights[-1]

    def split(
        self, joint: Float[Tensor, "batch len d_model"]
    ) -> Float[Tensor, "batch heads len d_head"]:
        """Split the last axis into heads."""
        d_head = joint.size(-1) // self.num_heads
        return joint.reshape(*joint.shape[:-1], self.num_heads, d_head).transpose(-3, -2)

    def merge(
        self, heads: Float[Tensor, "batch heads len d_head"]
    ) -> Float[Tensor, "batch len d_model"]:
        """Concatenate the heads again."""
        return heads.transpose(-3, -2).flatten(-2)


def _pair(attention: Attention, result: object) -> tuple[Tensor, Tensor | None]:
    """The output and the weights; an output alone for a batch of 2 would look like both."""
    if isinstance(result, tuple) and len(result) == 2:
        return result
    name = getattr(attention, "__name__", type(attention).__name__)
    raise TypeError(
        f"attention {name} returned a {type(result).__name__}: expected its output and its weights,"
        " which may be None"
    )


class NoWeightsError(ValueError):
    """An observed attention returned None for its weights."""


def observe(attention: Attention, keep: Callable[..., None]) -> Attention:
    """The attention, which then also calls ``keep`` with queries, keys, values, mask and weights.

    The kernel keeps no weights, so the readable version runs in its place. Any other attention
    without weights raises NoWeightsError.
    """
    explicit = scaled_dot_product_attention if attention is fused_attention else attention

    def observed(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, **options: float
    ) -> tuple[Tensor, Tensor | None]:
        output, weights = _pair(attention, explicit(query, key, value, mask, **options))
        if weights is None:
            name = getattr(attention, "__name__", attention)
            raise NoWeightsError(
                f"{name} returns None for the weights: return a tensor to see them"
            )
        keep(query, key, value, mask, weights)
        return output, weights

    return observed
