"""Probes of grouped queries."""

from typing import Any

import torch

from glassformer.tools.learn.attention_probes import attention_probes
from glassformer.tools.learn.check import Check, Solution
from glassformer.tools.learn.inputs import numbers


def six_heads(solution: Solution) -> dict[str, Any]:
    """6 heads with one query each, 2 groups with one key each; the value is the group's number"""
    query, key = numbers(1, 6, 1, 5, name="query"), numbers(1, 2, 1, 5, seed=1, name="key")
    output = solution.grouped_attention(query, key, torch.tensor([0.0, 1.0]).reshape(1, 2, 1, 1))
    return {"output of each head": output.flatten()}


def _attend(solution: Solution, *inputs: Any) -> Any:
    return solution.grouped_attention(*inputs)


def four_heads(solution: Solution) -> dict[str, Any]:
    """weight [[1], [3], [10], [20]], 4 heads, 2 groups"""
    return {"pooled": solution.pooled(torch.tensor([[1.0], [3.0], [10.0], [20.0]]), 4, 2)}


def wide_heads(solution: Solution) -> dict[str, Any]:
    """weight (12, 5), 6 heads, 2 groups"""
    return {"pooled": solution.pooled(numbers(12, 5, name="weight"), 6, 2)}


def bias(solution: Solution) -> dict[str, Any]:
    """bias (12), 6 heads, 3 groups"""
    return {"pooled": solution.pooled(numbers(12, name="bias"), 6, 3)}


CHECK = Check(
    probes={
        "grouped_attention": (
            six_heads,
            *(each for groups in (2, 1, 6) for each in attention_probes(_attend, 6, groups)),
        ),
        "pooled": (four_heads, wide_heads, bias),
    },
)
