"""Reads a trace for the pictures: maps as tensors with labels, layers, heads and steps by index."""

import torch

from glassformer.errors import UsageError
from glassformer.inspection.attention_of import Attention
from glassformer.inspection.trace.schema import AttentionPart, AttentionTrace, Trace
from glassformer.inspection.trace.subwords import labels

__all__ = [
    "PART_NAMES",
    "attention_in",
    "check_index",
    "chosen_steps",
    "map_of",
]

PART_NAMES = {
    "encoder": "Encoder's self-attention",
    "decoder": "Decoder's self-attention",
    "cross": "Decoder's cross-attention",
}


def attention_in(trace: Trace, part: AttentionPart) -> Attention:
    """The weights of all layers and heads of one part, with the labels along both sides."""
    maps = [
        torch.from_numpy(layer.weights.array()) for layer in trace.attention if layer.part == part
    ]
    return Attention.labelled(
        part,
        torch.stack(maps),
        source=labels(trace.source.pieces),
        read=labels(trace.target.read),
        written=labels(trace.target.pieces),
    )


def map_of(trace: Trace, part: AttentionPart, layer: int) -> AttentionTrace:
    """The attention sublayer of one layer; UsageError for a layer that the model does not have."""
    maps = {layer.layer: layer for layer in trace.attention if layer.part == part}
    check_index("layer", layer, len(maps))
    return maps[layer]


def check_index(name: str, index: int | None, count: int) -> None:
    """UsageError for the index of a layer or head that the model does not have; None is any.

    The message counts from 1, as the pictures and the command line do.

    >>> check_index("layer", 6, 6)
    Traceback (most recent call last):
    glassformer.errors.UsageError: layer 7: expected 1 to 6; layers count from 1
    """
    if index is not None and not 0 <= index < count:
        raise UsageError(f"{name} {index + 1}: expected 1 to {count}; {name}s count from 1")


def chosen_steps(steps: int, first: int, count: int | None) -> range:
    """The indices of ``count`` of the steps, from the index ``first`` on; None: of all that follow.

    Raises UsageError if there is none; its message counts the steps from 1, as the pictures do.

    >>> chosen_steps(12, 2, 3), chosen_steps(12, 10, None)
    (range(2, 5), range(10, 12))
    """
    if not 0 <= first < steps:
        raise UsageError(f"first {first + 1}: expected 1 to {steps}; steps count from 1")
    if count is not None and count < 1:
        raise UsageError(f"count {count}: expected at least 1 step")
    return range(first, steps if count is None else min(first + count, steps))
