"""Linear layers for decoding on a CPU: the same sums, with the weights in another layout.

Training multiplies hundreds of rows by a matrix that changes. Decoding multiplies a few rows by a
matrix that stays. Most of the time goes into reading the matrix, and into packing it anew for each
product.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["product"]

_LARGE = 1 << 20  # numbers of a matrix: packing a larger one takes longer than the product


def product(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """`F.linear` with this weight (out, in) and bias; neither may change later.

    >>> twice = product(2.0 * torch.eye(3), torch.ones(3))
    >>> twice(torch.tensor([[1.0, 0.0, 5.0]])).tolist()
    [[3.0, 1.0, 11.0]]
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if weight.device.type != "cpu" or weight.dtype not in (torch.float32, torch.bfloat16):
        return _plain(weight, bias)
    if weight.dtype == torch.bfloat16:
        return _packed(weight, bias) if _can_pack(weight.dtype) else _plain(weight, bias)
    for_row = _plain(weight.t().contiguous().t(), bias)  # this layout is fastest for a single row
    if weight.numel() < _LARGE or not _can_pack(weight.dtype):
        return for_row
    for_rows = _packed(weight, bias)
    return lambda x: for_row(x) if x.numel() == x.size(-1) else for_rows(x)


def _plain(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    return lambda x: F.linear(x, weight, bias)


def _packed(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """`F.linear` by oneDNN, with the weight packed once; `F.linear` itself packs it at each call.

    ``torch.compile`` uses the same operators for weights that do not change.
    """
    packed = torch.ops.mkldnn._reorder_linear_weight(weight)
    multiply = torch.ops.mkldnn._linear_pointwise
    return lambda x: multiply(x, packed, bias, "none", [], "")


@cache
def _can_pack(dtype: torch.dtype) -> bool:
    """Whether this torch has the operators, and this processor runs them."""
    try:
        ones = torch.ones(4, 4, dtype=dtype)
        return bool(_packed(ones, None)(ones).eq(4).all())
    except (AttributeError, RuntimeError):
        return False
