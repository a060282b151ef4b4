"""Rotary positions (Su et al. 2021): each self-attention turns its queries and keys."""

import torch
from torch import Tensor

from glassformer.model.attention import scaled_dot_product_attention


def rotary_angles(positions: Tensor, d_head: int) -> Tensor:
    """The angle of each pair at each position (equation 15), in float64."""
    exponents = torch.arange(0, d_head, 2, dtype=torch.float64) / d_head
    return positions[:, None] / 10_000**exponents


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """Each pair of neighbouring features, turned by its angle (equation 34)."""
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


def rotary_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Attention with turned queries and keys (equation 16). The queries are the last positions."""
    start = key.size(-2) - query.size(-2)
    angles = rotary_angles(torch.arange(key.size(-2)), key.size(-1))
    query, key = rotated(query, angles[start:]), rotated(key, angles)
    output, _ = scaled_dot_product_attention(query, key, value, mask)
    return output
