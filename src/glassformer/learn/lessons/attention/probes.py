"""Probes of scaled dot-product attention."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.learn.check import Check, Results, Solution, numbers, unpacked

__all__ = ["CHECK"]


def one_query(solution: Solution) -> dict[str, Any]:
    """query [[3, 1]], keys [[1, 0], [0, 1]], values [[10], [20]]"""
    query = torch.tensor([[3.0, 1.0]], dtype=torch.float64)
    values = torch.tensor([[10.0], [20.0]], dtype=torch.float64)
    return _called(solution, query, torch.eye(2, dtype=torch.float64), values)


def heads(solution: Solution) -> dict[str, Any]:
    """query (2, 3, 5, 11), key (2, 3, 7, 11), value (2, 3, 7, 13)"""
    return _called(solution, *_inputs())


def mask(solution: Solution) -> dict[str, Any]:
    """the same, with a mask (2, 1, 1, 7) that hides the last three keys of the second sentence"""
    mask = torch.arange(7) < torch.tensor([7, 4])[:, None, None, None]
    return _called(solution, *_inputs(), mask)


def empty_row(solution: Solution) -> dict[str, Any]:
    """the same, with a mask (5, 7) that hides all keys from the second query"""
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[1] = False
    return _called(solution, *_inputs(), mask)


def large_scores(solution: Solution) -> dict[str, Any]:
    """query [[300, 100]], keys [[-300, 0], [-400, 0], [1, 1]], the last one hidden"""
    query = torch.tensor([[300.0, 100.0]], dtype=torch.float64)
    key = torch.tensor([[-300.0, 0.0], [-400.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    return _called(solution, query, key, numbers(3, 5), torch.tensor([[True, True, False]]))


def reversed_keys(solution: Solution) -> dict[str, Any]:
    """the inputs of `heads`, with keys and values in reversed order"""
    query, key, value = _inputs()
    return _called(solution, query, key.flip(-2), value.flip(-2))


def _inputs() -> tuple[Tensor, Tensor, Tensor]:
    return numbers(2, 3, 5, 11), numbers(2, 3, 7, 11, seed=1), numbers(2, 3, 7, 13, seed=2)


def _called(solution: Solution, *inputs: Tensor) -> dict[str, Any]:
    copies = [tensor.clone() for tensor in inputs]
    answer = solution.scaled_dot_product_attention(*inputs)
    output, weights = unpacked(answer, "output", "weights")
    changed = not all(map(torch.equal, copies, inputs))
    return {"weights": weights, "output": output, "inputs are changed": changed}


def row_sum(results: Results) -> str | None:
    """The first query whose weights do not sum to 1; one that sees nothing has none."""
    for probe in ("one_query", "heads", "mask", "large_scores"):
        values = results.get(probe, {"weights": np.ones((1, 1))})
        sums = values["weights"].sum(-1).flatten()
        for place, total in enumerate(sums):
            if not abs(total - 1) < 1e-9:
                return f"The weights of query {place} sum to {total:.4g}."
    return None


def order(results: Results) -> str | None:
    first, second = results.get("heads"), results.get("reversed_keys")
    if first is None or second is None:
        return None
    change = abs(first["output"] - second["output"]).max()
    if change < 1e-9:
        return None
    return f"With keys and values in reversed order the output changes by {change:.3g}."


CHECK = Check(
    probes={
        "scaled_dot_product_attention": (
            one_query,
            heads,
            mask,
            empty_row,
            large_scores,
            reversed_keys,
        )
    },
    laws={
        "The weights of each query sum to 1.": row_sum,
        "Attention does not know the order of the keys.": order,
    },
)
