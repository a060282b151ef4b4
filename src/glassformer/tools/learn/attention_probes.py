"""Probes of exercises on attention; the queries are the last positions of the keys."""

from typing import Any

from glassformer.tools.learn.holes import Hole, mask
from glassformer.tools.learn.situations import MASKS, SIZES

__all__ = ["ATTENDED", "attention_hole"]

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
