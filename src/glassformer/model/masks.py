"""Masks: the keys that each query may attend to (sections 3.1 and 3.2.3).

A mask is boolean, **True = may attend**. Its axes are ``(q_len, k_len)`` or ``(batch, heads, q_len,
k_len)``. A size of 1 stands for any size.
"""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

__all__ = ["check_mask", "padding_mask", "subsequent_mask", "target_mask"]


def padding_mask(
    tokens: Int[Tensor, "batch len"], pad: int | Sequence[int]
) -> Bool[Tensor, "batch 1 1 len"]:
    """Hide the padding: a query may attend to every key except ``pad`` (one id, or several).

    >>> padding_mask(torch.tensor([[5, 6, 0]]), 0).tolist()
    [[[[True, True, False]]]]
    """
    if not isinstance(tokens, Tensor) or tokens.dim() != 2:
        got = tuple(getattr(tokens, "shape", ())) or type(tokens).__name__
        raise ValueError(f"tokens must be a tensor (batch, len), got {got}")
    pad_ids = list(pad) if isinstance(pad, Iterable) else [pad]
    real = torch.ones_like(tokens, dtype=torch.bool)
    for pad_id in pad_ids:
        real &= tokens != pad_id
    return real[:, None, None, :]


def subsequent_mask(
    length: int, *, device: torch.device | str | None = None
) -> Bool[Tensor, "length length"]:
    """Hide the future: position ``i`` may attend to each position ``j <= i`` (section 3.2.3).

    >>> subsequent_mask(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    if isinstance(length, Tensor) or length < 0:
        raise ValueError(f"length must be a number from 0, such as tokens.size(1), got {length}")
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def target_mask(
    tokens: Int[Tensor, "batch len"], pad: int | Sequence[int]
) -> Bool[Tensor, "batch 1 len len"]:
    """The decoder's self-attention mask, which hides the future and the padding.

    >>> target_mask(torch.tensor([[2, 7, 0]]), 0).int().tolist()
    [[[[1, 0, 0], [1, 1, 0], [1, 1, 0]]]]
    """
    return padding_mask(tokens, pad) & subsequent_mask(tokens.size(1), device=tokens.device)


def check_mask(mask: Tensor, scores_shape: Sequence[int]) -> None:
    """Raise TypeError for a mask that is not boolean, and ValueError for a wrong shape.

    A mask has two axes, or all axes of the scores. The first of three axes would count as heads,
    not as sentences.

    >>> check_mask(torch.ones(2, 3), (2, 3))
    Traceback (most recent call last):
    TypeError: a mask must be boolean (True = may attend), got torch.float32
    """
    if not isinstance(mask, Tensor):
        raise TypeError(f"a mask must be a boolean tensor, got {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise TypeError(f"a mask must be boolean (True = may attend), got {mask.dtype}")
    shape, wanted = tuple(mask.shape), tuple(scores_shape)
    aligned = zip(reversed(shape), reversed(wanted), strict=False)
    if len(shape) not in (2, len(wanted)) or any(size not in (1, want) for size, want in aligned):
        raise ValueError(
            f"a mask of shape {shape} does not fit scores of shape {wanted}: give (q_len, k_len),"
            " or every axis, with a size of 1 for any"
        )
