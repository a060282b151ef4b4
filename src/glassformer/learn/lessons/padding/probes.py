"""Probes of the padding mask, and of the softmax that uses it."""

from typing import Any

import torch
from torch import Tensor

from glassformer.learn.check import Check, Results, Solution, numbers

__all__ = ["CHECK"]


def one_sentence(solution: Solution) -> dict[str, Any]:
    """tokens [[5, 6, 0]], pad 0"""
    return {"mask": solution.padding_mask(torch.tensor([[5, 6, 0]]), 0)}


def another_padding(solution: Solution) -> dict[str, Any]:
    """tokens [[1, 0, 9], [1, 9, 9]], pad 9"""
    return {"mask": solution.padding_mask(torch.tensor([[1, 0, 9], [1, 9, 9]]), 9)}


def padding_first(solution: Solution) -> dict[str, Any]:
    """tokens [[0, 0, 5, 6], [7, 0, 8, 0]], pad 0"""
    return {"mask": solution.padding_mask(torch.tensor([[0, 0, 5, 6], [7, 0, 8, 0]]), 0)}


def one_query(solution: Solution) -> dict[str, Any]:
    """scores [[1, 2, 3]], mask [[True, True, False]]"""
    mask = torch.tensor([[True, True, False]])
    scores = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
    return _softmax(solution, scores, mask)


def no_mask(solution: Solution) -> dict[str, Any]:
    """scores (2, 3, 5, 7), no mask"""
    return _softmax(solution, numbers(2, 3, 5, 7), None)


def batch(solution: Solution) -> dict[str, Any]:
    """scores (2, 3, 5, 7), mask (2, 1, 1, 7) that hides three keys of the second sentence"""
    mask = torch.arange(7) < torch.tensor([7, 4])[:, None, None, None]
    return _softmax(solution, numbers(2, 3, 5, 7), mask)


def large_scores(solution: Solution) -> dict[str, Any]:
    """scores [[-30000, -30001, 30000]], mask [[True, True, False]]"""
    scores = torch.tensor([[-30_000.0, -30_001.0, 30_000.0]], dtype=torch.float64)
    return _softmax(solution, scores, torch.tensor([[True, True, False]]))


def huge_scores(solution: Solution) -> dict[str, Any]:
    """scores [[-2e9, -2e9 - 1, 3e9]], mask [[True, True, False]]"""
    scores = torch.tensor([[-2e9, -2e9 - 1, 3e9]], dtype=torch.float64)
    values = _softmax(solution, scores, torch.tensor([[True, True, False]]))
    return values | {"weights": values["weights"].float()}  # a logarithm has no more digits there


def nothing_to_see(solution: Solution) -> dict[str, Any]:
    """scores [[1, 2]], mask [[False, False]]"""
    scores = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    return _softmax(solution, scores, torch.tensor([[False, False]]))


def _softmax(solution: Solution, scores: Tensor, mask: Tensor | None) -> dict[str, Any]:
    before = scores.clone()
    weights = solution.masked_softmax(scores, mask)
    return {"weights": weights, "scores are changed": not torch.equal(before, scores)}


def row_sum(results: Results) -> str | None:
    for probe in ("one_query", "no_mask", "batch"):
        sums = results[probe]["weights"].sum(-1).flatten() if probe in results else []
        for place, total in enumerate(sums):
            if not abs(total - 1) < 1e-9:
                return f"The weights of query {place} sum to {total:.4g}."
    return None


def hidden_weight(results: Results) -> str | None:
    weight = results["one_query"]["weights"].flat[2] if "one_query" in results else 0.0
    return None if weight == 0 else f"With scores 1, 2, 3 the hidden third key gets {weight:.3g}."


CHECK = Check(
    probes={
        "padding_mask": (one_sentence, another_padding, padding_first),
        "masked_softmax": (one_query, no_mask, batch, large_scores, huge_scores, nothing_to_see),
    },
    laws={
        "A hidden key gets no weight.": hidden_weight,
        "The weights of each query sum to 1.": row_sum,
    },
)
