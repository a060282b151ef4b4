"""What pictures of a trace begin with: its pieces as labels, its maps as tensors."""

from collections.abc import Sequence

import torch

from glassformer.errors import UsageError
from glassformer.inspection.attention_of import Attention, Part
from glassformer.inspection.trace.records import AttentionTrace
from glassformer.inspection.trace.schema import Piece, Trace

__all__ = [
    "PART_NAMES",
    "attention_in",
    "check_index",
    "chosen_steps",
    "label",
    "labels",
    "map_of",
]

PART_NAMES = {
    "encoder": "Encoder's self-attention",
    "decoder": "Decoder's self-attention",
    "cross": "Decoder's cross-attention",
}

_SPACE = "\u2581"  # SentencePiece writes ▁ where a word begins


def label(piece: str) -> str:
    """A piece to read: a word without SentencePiece's mark, ``·`` before what continues one.

    >>> [label(piece) for piece in ("▁Hun", "de", "</s>", "<0xE6>", "▁")]
    ['Hun', '·de', '</s>', '<0xE6>', '▁']
    """
    if piece.startswith(_SPACE):
        return piece.removeprefix(_SPACE) or _SPACE
    special = piece.startswith("<") and piece.endswith(">") and len(piece) > 2
    return piece if special else f"·{piece}"


def labels(pieces: Sequence[Piece]) -> list[str]:
    """Of each piece, its :func:`label`."""
    return [label(piece.piece) for piece in pieces]


def attention_in(trace: Trace, part: Part) -> Attention:
    """The weights of all layers and heads of one part, with the words along both sides.

    The queries of ``cross`` bear the piece that they write, as alignments are read; those of
    ``decoder`` the piece that they read, as its keys do.
    """
    maps = [one.weights.array() for one in trace.attention if one.part == part]
    source, read = labels(trace.source.pieces), labels(trace.target.read)
    words = {
        "encoder": (source, source, ("query (source)", "key (source)")),
        "decoder": (read, read, ("query (target)", "key (target)")),
        "cross": (
            labels(trace.target.pieces),
            source,
            ("query (target): the token it predicts", "key (source)"),
        ),
    }[part]
    return Attention(torch.stack([torch.from_numpy(one) for one in maps]), *words)


def map_of(trace: Trace, part: Part, layer: int) -> AttentionTrace:
    """One attention sublayer; UsageError for a layer that the model does not have."""
    found = {one.layer: one for one in trace.attention if one.part == part}
    check_index("layer", layer, len(found))
    return found[layer]


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
