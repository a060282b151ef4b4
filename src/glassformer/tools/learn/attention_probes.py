"""Probes and a law of exercises on attention; the queries are the last positions of the keys."""

from typing import Any

from glassformer.tools.learn.check import Evidence, Probe, measured
from glassformer.tools.learn.holes import Hole, mask
from glassformer.tools.learn.situations import MASKS, SIZES

__all__ = ["ATTENDED", "attention_hole", "moved"]

ATTENDED: dict[str, Any] = {
    "heads": (6,),
    "q_len": (2, 1, 5),
    "k_len": (7, 5, 11),
    "mask": MASKS,
    "size": SIZES,
}
"""The axes of attention."""


def attention_hole(name: str, *, groups: str = "heads", **more: Any) -> Hole:
    """A hole with the inputs of attention, and ``more`` inputs before the mask."""
    return Hole(
        name,
        "output",
        query="batch heads q_len 14",
        key=f"batch {groups} k_len 14",
        value=f"batch {groups} k_len 5",
        **more,
        mask=mask("q_len", "k_len", "heads"),
    )


def moved(hole: Hole, **more: Any) -> tuple[tuple[Probe, Probe], dict[str, Evidence]]:
    """Two examples, of which the second has a hidden key in front, and the law that they are equal.

    It holds for attention that sees only distances.
    """
    query, mask = [[[[1.0, 2.0]]]], [[False, True, True]]
    keys, values = [[3.0, 1.0], [0.0, 2.0], [1.0, 1.0]], [[1.0], [2.0], [4.0]]
    short = hole.example(query=query, key=[[keys[1:]]], value=[[values[1:]]], **more)
    hidden = hole.example(query=query, key=[[keys]], value=[[values]], **more, mask=mask)
    evidence = measured(
        lambda short, hidden: abs(short["output"] - hidden["output"]).max(),
        0,
        "A hidden key changes the output by {}.",
        *(short, hidden),
    )
    law = "Hidden keys in front move all positions, and no score depends on that."
    return (short, hidden), {law: evidence}
