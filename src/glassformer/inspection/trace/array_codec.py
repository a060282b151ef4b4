"""Arrays as text: a few bits for each number, a scale beside them, base64 around them.

A weight that is drawn as a colour needs no more than 8 bits, and a page that is mailed should be
small. Numbers that somebody adds up again (the worked sum) stay float32.
"""

import base64
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

__all__ = ["Packed", "pack"]

Kind = Literal["u8", "u16", "f32"]

_TYPES: dict[str, str] = {"u8": "<u1", "u16": "<u2", "f32": "<f4"}


@dataclass(frozen=True)
class Packed:
    """An array: ``number = offset + scale * stored``, row by row, the last axis fastest.

    >>> import torch
    >>> packed = pack(torch.tensor([[0.0, 0.5], [1.0, 0.25]]), "u8")
    >>> packed.shape, [round(number, 2) for number in packed.array().flatten().tolist()]
    ((2, 2), [0.0, 0.5, 1.0, 0.25])
    """

    shape: tuple[int, ...]
    kind: Kind
    """Of each stored number: unsigned with 8 or 16 bits, or a float of 32; little end first."""
    scale: float
    offset: float
    data: str
    """The stored numbers in base64."""

    def array(self) -> npt.NDArray[np.float32]:
        """The numbers again, off by half a ``scale`` at most."""
        stored = np.frombuffer(base64.b64decode(self.data), _TYPES[self.kind])
        numbers = self.offset + self.scale * stored.reshape(self.shape).astype(np.float64)
        return numbers.astype(np.float32)


def pack(values: Tensor, kind: Kind) -> Packed:
    """The smallest number is stored as 0 and the largest as the largest that ``kind`` holds.

    A smallest number of 0 or more counts as 0: no weight stays exactly none.
    """
    numbers = values.detach().double().cpu().numpy()
    if kind == "f32":
        scale, offset, stored = 1.0, 0.0, numbers
    else:
        low = min(float(numbers.min(initial=0.0)), 0.0)
        most = np.iinfo(_TYPES[kind]).max
        scale = (float(numbers.max(initial=low)) - low) / most or 1.0
        offset, stored = low, np.round((numbers - low) / scale).clip(0, most)
    data = base64.b64encode(stored.astype(_TYPES[kind]).tobytes()).decode()
    return Packed(tuple(values.shape), kind, scale, offset, data)
