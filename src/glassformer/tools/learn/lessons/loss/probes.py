"""Probes of the loss with label smoothing."""

import math
from typing import Any

import torch

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


LOSS = Hole(
    "label_smoothed_cross_entropy",
    number,
    options=("smoothing", "pad_id"),
    logits="batch length 11",
    labels=ids("length", 11, "pad_id"),
)
PROBES = (
    LOSS.probes(
        LOSS.example(
            "A model that is sure and right loses nothing without smoothing.",
            logits=[[[0.0, 0.0, 0.0, 40.0]]],
            labels=[[3]],
            smoothing=0.0,
        ),
        LOSS.example(
            "Equal logits lose the logarithm of their number, because the shares sum to 1.",
            logits=[[[0.0] * 5] * 2],
            labels=[[2, 4]],
        ),
        LOSS.example(logits=[[[1000.0, 0.0, 0.0, 0.0]]], labels=[[1]]),
        type=WIDE,
        strides=NONE,
        length=(5, 1, 7),
        size=SIZES,
        padding=PADDING,
        smoothing=("", 0.3, 0.0),
        pad_id=("", 10, 4),
    ),
)
