"""Dropout (section 5.4), made cheap on a CPU.

The readable version is ``torch.nn.Dropout``. A test checks that both agree in share, mean and
gradient (tests/model/fast/test_dropout.py). ``torch.nn.Dropout`` draws one Bernoulli number an
element, which on a CPU takes longer than the matrix product beside it. Here each element has one
random *byte*, and is dropped if the byte is below ``256 p``. The bytes come from torch's generator,
so that a seed repeats them.

Departure from the paper: ``p`` is rounded to a multiple of 1/256, 0.1 to 26/256, because a byte has
256 values. The kept elements are scaled by the exact inverse of their share.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["ByteDropout"]


class ByteDropout(nn.Module):
    """In training, zeroes a share ``p`` of the elements; on a GPU, torch's dropout does so.

    >>> sorted(set(ByteDropout(0.5)(torch.ones(4000)).tolist()))
    [0.0, 2.0]
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"dropout must be at least 0 and below 1, got {p}")
        self.p = p
        self.generator: torch.Generator | None = None  # of torch, unless threads share a batch

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        if x.device.type != "cpu":  # there torch's dropout is as fast
            return F.dropout(x, self.p)
        dropped = min(round(256 * self.p), 255)  # values of a byte
        scale = 256 / (256 - dropped)
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64)
        words.random_(-(2**63), None, generator=self.generator)
        octets = words.view(torch.uint8)[: x.numel()].view(x.shape)
        kept = octets.to(x.dtype).ge_(dropped)  # bfloat16 holds 0 to 255 exactly
        if x.dtype in (torch.float32, torch.float64):
            return x * kept.mul_(scale)
        # A 16-bit mask would round the scale, and all kept elements would have that error.
        return x * kept * scale

    def extra_repr(self) -> str:
        return f"p={self.p}"
