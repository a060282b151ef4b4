"""Probes of the decoder's masks, and of the shift of its input."""

from typing import Any

from torch import Tensor

from glassformer.tools.learn.holes import Hole, axis, ids
from glassformer.tools.learn.situations import ELSEWHERE, IDS, PADDING, Situation


def whole_mask(mask: Any, s: Situation) -> dict[str, Any]:
    """The mask, expanded to all axes, because a mask that broadcasts is right too."""
    whole = (s.batch, 1, s.length, s.length)
    if isinstance(mask, Tensor) and mask.dim() in (2, 4):
        sizes = zip(reversed(mask.shape), reversed(whole), strict=False)
        mask = mask.expand(whole) if all(size in (1, want) for size, want in sizes) else mask
    return {"mask": mask}


TRIANGLE = Hole(
    "subsequent_mask",
    lambda mask, _: {"mask": mask, "Your mask is no tensor": not isinstance(mask, Tensor)},
    length=axis,
)
TARGET = Hole("target_mask", whole_mask, tokens=ids("length", 10, "pad"), pad=axis)
SHIFT = Hole(
    "shift",
    lambda shifted, _: {
        "input for the decoder": shifted,
        "type of your input": str(shifted.dtype),
    },
    labels=ids("length", 10, 0),
    bos=axis,
)
ON_IDS: dict[str, Any] = {**IDS, "device": ELSEWHERE, "padding": PADDING}
PROBES = (
    # A learner's loops over rows and columns take seconds for 1,100 tokens.
    TRIANGLE.probes(TRIANGLE.example(length=3), length=(5, 1, 2, 300)),
    TARGET.probes(
        TARGET.example(tokens=[[2, 7, 0], [2, 8, 9]], pad=0, length=3),
        **ON_IDS,
        pad=(0, 9, 4),
        length=(5, 1, 300),
    ),
    SHIFT.probes(
        SHIFT.example(
            "The decoder's input begins with bos, and lacks the last label.",
            labels=[[7, 8, 3], [9, 3, 0]],
            bos=2,
        ),
        **ON_IDS,
        bos=(2, 5),
        length=(5, 1, 2, 1100),
    ),
)
