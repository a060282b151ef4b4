"""Probes of the loss with label smoothing."""

import math
from typing import Any

import torch

from glassformer.tools.learn.check import Check, Values, measured
from glassformer.tools.learn.holes import Hole, ids
from glassformer.tools.learn.situations import NONE, PADDING, SIZES, WIDE, Situation


def number(answer: Any, s: Situation) -> dict[str, Any]:
    """The loss, with infinity in the place of NaN."""
    loss = torch.as_tensor(answer)
    is_cut = "length" in s.axes and not s.gradients and not loss.requires_grad
    return {
        "loss": loss.nan_to_num(nan=math.inf, posinf=math.inf),
        "No gradient comes back to the logits": is_cut,
    }


def lost(values: Values) -> Any:
    return values["loss"]


LOSS = Hole(
    "label_smoothed_cross_entropy",
    number,
    options=("smoothing", "pad_id"),
    logits="batch length 11",
    labels=ids("length", 11, "pad_id"),
)
ONE_LABEL = LOSS.example(logits=[[[0.0, 0.6931, 0.0]]], labels=[[1]])
EQUAL = LOSS.example(logits=[[[0.0] * 5] * 2], labels=[[2, 4]])
SURE = LOSS.example(logits=[[[0.0, 0.0, 0.0, 40.0]]], labels=[[3]], smoothing=0.0)
FAR = LOSS.example(logits=[[[1000.0, 0.0, 0.0, 0.0]]], labels=[[1]])
CHECK = Check.of(
    LOSS.probes(
        ONE_LABEL,
        EQUAL,
        SURE,
        FAR,
        type=WIDE,
        strides=NONE,
        length=(5, 1, 7),
        size=SIZES,
        padding=PADDING,
        smoothing=("", 0.3, 0.0),
        pad_id=("", 10, 4),
    ),
    laws={
        "A model that is sure and right loses nothing.": measured(
            lost, 0, "The logits 0, 0, 0 and 40 at the label lose {} without smoothing.", SURE
        ),
        "Equal logits lose the logarithm of their number.": measured(
            lost,
            math.log(5),
            "Equal logits for 5 symbols lose {}; shares that sum to 1 lose ln 5 = 1.609.",
            EQUAL,
        ),
        "The loss of large logits is a number.": measured(
            lambda values: math.isfinite(values["loss"]),
            True,
            "The logits 1000, 0, 0, 0 with label 1 lose infinity or NaN; right is 975.",
            FAR,
        ),
    },
)
