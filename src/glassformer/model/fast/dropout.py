"""Dropout (section 5.4), made cheap on a CPU.

The plain twin is ``torch.nn.Dropout``; tests/model/fast/test_dropout.py holds the two equal in
share, mean and gradient. It draws one Bernoulli number an element, which on a CPU takes longer than
the matrix product beside it. Here one random *byte* an element decides: an element is dropped if
its byte is below ``256 p``. The bytes come from torch's generator: a seed repeats them.

Departure from the paper: ``p`` is rounded to a multiple of 1/256, 0.1 to 26/256, because a byte has
256 values. The kept elements are scaled by the exact inverse of their share.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["ByteDropout", "dropout_mask"]


def dropout_mask(like: Tensor, p: float) -> Tensor:
    """A tensor of zeros and ``1 / kept share``, of the shape and type of ``like``.

    >>> sorted(set(dropout_mask(torch.ones(4000), 0.5).tolist()))
    [0.0, 2.0]
    """
    return _kept(like, p).mul_(_scale(p))


class ByteDropout(nn.Module):
    """Zeroes a share ``p`` of the elements while training, on a GPU by torch's own dropout.

    >>> ByteDropout(0.5).eval()(torch.ones(2)).tolist()
    [1.0, 1.0]
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"dropout must be at least 0 and below 1, got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        if x.device.type != "cpu":  # there torch's own is as quick
            return F.dropout(x, self.p)
        if x.dtype in (torch.float32, torch.float64):
            return x * dropout_mask(x, self.p)
        # A 16-bit mask holds the scale too coarsely: every kept element would be off alike.
        return x * _kept(x, self.p) * _scale(self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def _kept(like: Tensor, p: float) -> Tensor:
    """One for each kept element, zero for each dropped one."""
    words = torch.empty((like.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    octets = words.view(torch.uint8)[: like.numel()].view(like.shape)
    return octets.to(like.dtype).ge_(_dropped(p))  # bfloat16 holds 0 to 255 exactly


def _scale(p: float) -> float:
    return 256 / (256 - _dropped(p))


def _dropped(p: float) -> int:
    """The number of byte values, of 256, that drop an element; at most 255."""
    return min(round(256 * p), 255)
