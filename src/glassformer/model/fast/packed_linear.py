"""The product with a weight matrix, arranged for decoding on a CPU: the same sums, other layouts.

Training multiplies hundreds of rows by a matrix that changes; decoding a few rows by one that does
not. Then the time goes into reading the matrix, and into what the library does to it beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["product"]

_LARGE = 1 << 20  # numbers of a matrix: packed anew at each product, it costs more than the product


def product(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """`F.linear` with this weight (out, in) and bias, which must not change from here on.

    >>> twice = product(2.0 * torch.eye(3), torch.ones(3))
    >>> twice(torch.tensor([[1.0, 0.0, 5.0]])).tolist()
    [[3.0, 1.0, 11.0]]
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if weight.device.type != "cpu" or weight.dtype not in (torch.float32, torch.bfloat16):
        return _plain(weight, bias)
    if weight.dtype == torch.bfloat16:
        return _packed(weight, bias) if _can_pack(weight.dtype) else _plain(weight, bias)
    one = _plain(weight.t().contiguous().t(), bias)  # one row reads long runs of it
    if weight.numel() < _LARGE or not _can_pack(weight.dtype):
        return one
    many = _packed(weight, bias)
    return lambda x: one(x) if x.numel() == x.size(-1) else many(x)


def _plain(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    return lambda x: F.linear(x, weight, bias)


def _packed(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """By oneDNN, in the layout that its products want; `F.linear` would make it each time.

    These operators are what ``torch.compile`` uses for weights that do not change.
    """
    packed = torch.ops.mkldnn._reorder_linear_weight(weight)
    multiply = torch.ops.mkldnn._linear_pointwise
    return lambda x: multiply(x, packed, bias, "none", [], "")


@cache
def _can_pack(dtype: torch.dtype) -> bool:
    """Whether this torch, on this processor, has them."""
    try:
        ones = torch.ones(4, 4, dtype=dtype)
        return bool(_packed(ones, None)(ones).eq(4).all())
    except (AttributeError, RuntimeError):
        return False
