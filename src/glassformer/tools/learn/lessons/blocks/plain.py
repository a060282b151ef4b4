"""LayerNorm by hand; the package uses torch's LayerNorm."""

import torch
from torch import Tensor


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """The formula that torch has as ``nn.LayerNorm``, which the package uses."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + epsilon) * weight + bias
