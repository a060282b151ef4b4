"""Writes arrays as text: numbers of 8, 16 or 32 bits, with a scale and an offset, in base64.

A page draws a weight as a colour, for which 8 bits are enough. A small page fits into an email.
Queries, keys and values stay float32, because readers compute products from them.
"""

import base64
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

__all__ = ["EncodedArray", "encode_array"]

Kind = Literal["u8", "u16", "f32"]

_TYPES: dict[str, str] = {"u8": "<u1", "u16": "<u2", "f32": "<f4"}


@dataclass(frozen=True)
class EncodedArray:
    """An encoded array, row by row, with ``number = offset + scale * stored``.

    >>> import torch
    >>> encoded = encode_array(torch.tensor([[0.0, 0.5], [1.0, 0.25]]), "u8")
    >>> encoded.shape, [round(number, 2) for number in encoded.array().flatten().tolist()]
    ((2, 2), [0.0, 0.5, 1.0, 0.25])
    """

    shape: tuple[int, ...]
    kind: Kind
    """The little-endian type of a number: unsigned with 8 or 16 bits, or float with 32 bits."""
    scale: float
    offset: float
    data: str
    """The stored numbers in base64."""

    def array(self) -> npt.NDArray[np.float32]:
        """The numbers, with an error of at most half a ``scale``."""
        stored = np.frombuffer(base64.b64decode(self.data), _TYPES[self.kind])
        numbers = self.offset + self.scale * stored.reshape(self.shape).astype(np.float64)
        return numbers.astype(np.float32)


def encode_array(values: Tensor, kind: Kind) -> EncodedArray:
    """Store the smallest number as 0 and the largest as the largest integer of ``kind``.

    If no number is below 0, 0 counts as the smallest, so that a weight of 0 stays exactly 0.
    """
    numbers = values.detach().double().cpu().numpy()
    if kind == "f32":
        scale, offset, stored = 1.0, 0.0, numbers
    else:
        offset = min(float(numbers.min(initial=0.0)), 0.0)
        most = np.iinfo(_TYPES[kind]).max
        scale = (float(numbers.max(initial=offset)) - offset) / most or 1.0
        stored = np.round((numbers - offset) / scale).clip(0, most)
    data = base64.b64encode(stored.astype(_TYPES[kind]).tobytes()).decode()
    return EncodedArray(tuple(values.shape), kind, scale, offset, data)
