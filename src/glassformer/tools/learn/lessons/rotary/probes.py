"""Probes of rotary positions."""

import math
from typing import Any

import torch

from glassformer.tools.learn.attention_probes import attention_probes, position_laws
from glassformer.tools.learn.check import Check, Probe, Solution, probe
from glassformer.tools.learn.inputs import numbers


def _angles(positions: list[int], d_head: int) -> Probe:
    return probe(
        f"positions {positions}, d_head {d_head}",
        lambda solution: {"angles": solution.rotary_angles(torch.tensor(positions), d_head)},
    )


def far(solution: Solution) -> dict[str, Any]:
    """positions 1,000,000 and 1,000,001, d_head 14"""
    torch.set_default_dtype(torch.float32)  # as in a translator; reset after the probe
    return {"angles": solution.rotary_angles(torch.tensor([1_000_000, 1_000_001]), 14).double()}


def quarter_turn(solution: Solution) -> dict[str, Any]:
    """x [[1, 2, 3, 4]], angles [[0, π/2]]"""
    x, angles = torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([[0.0, math.pi / 2]])
    return {"output": solution.rotated(x, angles)}


def heads(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5, 14), angles (5, 7)"""
    x, angles = numbers(2, 3, 5, 14, name="x"), numbers(5, 7, seed=1).detach()
    return {"output": solution.rotated(x, angles)}


def single_precision(solution: Solution) -> dict[str, Any]:
    """x (2, 14) in float32, angles (2, 7) in float64"""
    output = solution.rotated(torch.ones(2, 14, dtype=torch.float32), torch.ones(2, 7))
    return {"type": str(output.dtype)}


def two_keys(solution: Solution) -> dict[str, Any]:
    """query [[1, 0]], keys [[1, 0], [1, 0]], values [[10], [20]]"""
    query, value = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[10.0], [20.0]]]])
    return {"output": solution.rotary_attention(query, query.expand(1, 1, 2, 2), value)}


ATTENDED = attention_probes(lambda solution, *inputs: solution.rotary_attention(*inputs))
CHECK = Check(
    probes={
        "rotary_angles": (_angles([0, 3], 4), _angles([13, 2, 7], 14), far),
        "rotated": (quarter_turn, heads, single_precision),
        "rotary_attention": (two_keys, *ATTENDED),
    },
    laws=position_laws(ATTENDED),
)
