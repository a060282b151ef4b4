"""Relative positions (Shaw et al. 2018): a learned vector for each distance, added to the keys."""

import math

import torch
from torch import Tensor

from glassformer.model.attention import masked_softmax


def clipped_distances(q_len: int, k_len: int, most: int) -> Tensor:
    """The row of the table for each query and key (section 3.2)."""
    keys = torch.arange(k_len)
    queries = keys[k_len - q_len :, None]
    return (keys - queries).clamp(-most, most) + most


def relative_attention(
    query: Tensor, key: Tensor, value: Tensor, table: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Attention with the vector of the distance added to each key (equations 4 and 5)."""
    rows = clipped_distances(query.size(-2), key.size(-2), table.size(0) // 2)
    by_distance = torch.einsum("bhqd,qkd->bhqk", query, table[rows])
    scores = (query @ key.mT + by_distance) / math.sqrt(query.size(-1))
    return masked_softmax(scores, mask) @ value
