"""Running softmax (Milakov and Gimelshein 2018): attention in one pass over blocks of keys."""

import math
from collections.abc import Iterable
from typing import TypeAlias

import torch
from torch import Tensor

Block: TypeAlias = tuple[Tensor, Tensor, Tensor | None]
"""Some keys, their values, and their mask."""


def running_sum(scores: Iterable[float]) -> tuple[float, float]:
    """The largest score m, and the sum of exp(score - m): algorithm 3."""
    largest, total = -math.inf, 0.0
    for score in scores:
        if score == -math.inf:  # hidden; exp(-∞ - -∞) is NaN
            continue
        before, largest = largest, max(largest, score)
        total = total * math.exp(before - largest) + math.exp(score - largest)
    return largest, total


def running_attention(query: Tensor, blocks: Iterable[Block]) -> Tensor:
    """Equation 1, with one block's scores in memory at a time (Dao et al. 2022, algorithm 1)."""
    largest = query.new_full((*query.shape[:-1], 1), -math.inf)
    total = mixed = torch.zeros_like(largest)
    for key, value, mask in blocks:
        scores = query @ key.mT / math.sqrt(query.size(-1))
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        before, largest = largest, torch.maximum(largest, scores.amax(-1, keepdim=True))
        shift = largest.masked_fill(largest == -math.inf, 0.0)  # no key is visible yet
        kept, exponentials = (before - shift).exp(), (scores - shift).exp()
        total = kept * total + exponentials.sum(-1, keepdim=True)
        mixed = kept * mixed + exponentials @ value
    return mixed / total.masked_fill(total == 0, 1.0)
