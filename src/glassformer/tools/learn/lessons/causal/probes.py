"""Probes of the decoder's masks, and of the shift of its input."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from glassformer.tools.learn.check import Check, Values, measured
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
THREE = TRIANGLE.example(length=3)
TWO_SENTENCES = TARGET.example(tokens=[[2, 7, 0], [2, 8, 9]], pad=0, length=3)
TWO_TARGETS = SHIFT.example(labels=[[7, 8, 3], [9, 3, 0]], bos=2)


def mask_of(values: Values) -> NDArray[Any]:
    """The mask (3, 3) of length 3."""
    return values["mask"].reshape(-1, 3, 3)[-1]


LENGTHS = (5, 1, 2, 1100)
ON_IDS: dict[str, Any] = {**IDS, "device": ELSEWHERE, "padding": PADDING}
CHECK = Check.of(
    TRIANGLE.probes(THREE, length=LENGTHS),
    TARGET.probes(TWO_SENTENCES, **ON_IDS, pad=(0, 9, 4), length=(5, 1, 300)),
    SHIFT.probes(TWO_TARGETS, **ON_IDS, bos=(2, 5), length=LENGTHS),
    laws={
        "No position attends to a later one.": measured(
            lambda values: np.triu(mask_of(values), 1).sum(),
            0,
            "In a mask of length 3, {} later positions may be attended to.",
            *(THREE, TWO_SENTENCES),
        ),
        "Each position attends to itself.": measured(
            lambda values: mask_of(values).diagonal().sum(),
            3,
            "In a mask of length 3, {} positions may attend to themselves.",
            *(THREE, TWO_SENTENCES),
        ),
        "No position attends to padding.": measured(
            lambda values: values["mask"][0, 0, :, 2].sum(),
            0,
            "{} of 3 positions of [2, 7, 0] may attend to the padding.",
            TWO_SENTENCES,
        ),
        "The decoder does not read the label that it has to predict.": measured(
            lambda values: (values["input for the decoder"][0] == (7, 8, 3)).sum(),
            0,
            "At {} of 3 steps the decoder reads the label that it has to predict.",
            TWO_TARGETS,
        ),
        "The decoder's input begins with bos.": measured(
            lambda values: values["input for the decoder"][0, 0],
            2,
            "With bos 2, your first input is {}.",
            TWO_TARGETS,
        ),
    },
)
