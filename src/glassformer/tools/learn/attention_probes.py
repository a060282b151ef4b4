"""Probes and a law of exercises on attention; the queries are the last positions of the keys."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from glassformer.tools.learn.check import Evidence, Probe, Solution, measured, probe
from glassformer.tools.learn.holes import Hole, mask
from glassformer.tools.learn.inputs import numbers
from glassformer.tools.learn.situations import MASKS, SIZES

__all__ = ["ATTENDED", "attention_hole", "moved", "position_laws"]

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


def moved(attend: Callable[..., Tensor]) -> tuple[Probe, Probe]:
    """Two probes of ``attend``; in the second one, hidden keys stand in front of the same keys."""

    def attended(k_len: int, text: str = "", mask: Tensor | None = None) -> Probe:
        def run(solution: Solution) -> dict[str, Tensor]:
            query, key, value = (
                numbers(1, 2, 11, 14, seed=seed, name=name)
                for seed, name in enumerate(("query", "key", "value"))
            )
            inputs = query[:, :, -2:], key[:, :, -k_len:], value[:, :, -k_len:]
            return {"output": attend(solution, *inputs, mask)}

        return probe(f"query (1, 2, 2, 14), key and value (1, 2, {k_len}, 14){text}", run)

    text = ", a mask that hides the first 4 keys"
    return attended(7), attended(11, text, (torch.arange(11) >= 4).expand(2, 11))


def position_laws(probes: tuple[Probe, Probe]) -> dict[str, Evidence]:
    """The law of attention that sees only distances."""
    return {
        "Hidden keys in front move all positions, and no score depends on that.": measured(
            lambda short, hidden: abs(short["output"] - hidden["output"]).max(),
            0,
            "Four hidden keys change the output by {}.",
            *probes,
        )
    }
