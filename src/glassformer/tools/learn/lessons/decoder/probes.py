"""Probes of a decoder block, and of the stack of blocks."""

from typing import Any

from glassformer.tools.learn.holes import mask
from glassformer.tools.learn.situations import MASKS
from glassformer.tools.learn.stacks import BLOCK, STACK, holes

DECODER_BLOCK, DECODER = holes(
    "Decoder",
    "DecoderBlock",
    ("self_mask", "memory_mask"),
    x="batch tgt_len 6",
    memory="batch src_len 6",
    self_mask=mask("tgt_len", "tgt_len"),
    memory_mask=mask("tgt_len", "src_len"),
)
AXES: dict[str, Any] = {
    "tgt_len": (5, 1),
    "src_len": (7, 1, 5),
    "self_mask": (MASKS[5], *MASKS[:4]),
    "memory_mask": tuple(f"memory: {each}" for each in (*MASKS[:4], MASKS[8])),
}
PROBES = (
    DECODER_BLOCK.probes(**AXES, **BLOCK),
    DECODER.probes(**AXES, **STACK),
)
