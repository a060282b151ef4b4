"""Probes of an encoder block, and of the stack of blocks."""

from typing import Any

from glassformer.tools.learn.holes import mask
from glassformer.tools.learn.situations import MASKS
from glassformer.tools.learn.stacks import BLOCK, STACK, holes

ENCODER_BLOCK, ENCODER = holes(
    "Encoder", "EncoderBlock", (), x="batch length 6", mask=mask("length", "length", 3)
)
AXES: dict[str, Any] = {"length": (5, 1), "mask": MASKS}
PROBES = (
    ENCODER_BLOCK.probes(
        ENCODER_BLOCK.example(x=[[[1.0, 2.0, 3.0, 5.0]]], sizes=(4, 1, 3), norm="post"),
        **AXES,
        **BLOCK,
    ),
    ENCODER.probes(**AXES, **STACK),
)
