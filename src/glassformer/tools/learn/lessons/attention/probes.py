"""Probes of scaled dot-product attention."""

from typing import Any

import torch
from torch import Tensor

from glassformer.tools.learn.attention_probes import sums_to_one
from glassformer.tools.learn.check import Check, Solution, unpacked
from glassformer.tools.learn.inputs import given, numbers
from glassformer.tools.learn.situations import MASKS, NONE, SIZES, Situation, situations


def one_query(solution: Solution) -> dict[str, Tensor]:
    """query [[3, 1]], keys [[1, 0], [0, 1]], values [[10], [20]]"""
    query, key = given([[3.0, 1.0]], "query"), given(torch.eye(2), "key")
    return _called(solution, query, key, given([[10.0], [20.0]], "value"))


def large_scores(solution: Solution) -> dict[str, Tensor]:
    """query [[300, 100]], keys [[-300, 0], [-400, 0], [1, 1]], the last key hidden"""
    query, key = given([[300.0, 100.0]]), given([[-300.0, 0.0], [-400.0, 0.0], [1.0, 1.0]])
    return _called(solution, query, key, numbers(3, 5, name="value"), given([[True, True, False]]))


def in_situation(solution: Solution, s: Situation) -> dict[str, Any]:
    heads = s.batch, 3
    query, key = s.numbers("query", *heads, s.q_len, 11), s.numbers("key", *heads, s.k_len, 11)
    value = s.numbers("value", *heads, s.k_len, 13)
    return _called(solution, query, key, value, *s.mask(s.q_len, s.k_len, s.kind, heads=3))


def _called(solution: Solution, *inputs: Tensor | None) -> dict[str, Any]:
    answer = solution.scaled_dot_product_attention(*inputs)
    output, weights = unpacked(answer, "output", "weights")
    return {"weights": weights, "output": output}


CHECK = Check(
    probes={
        "scaled_dot_product_attention": (
            one_query,
            *situations(
                "attention",
                in_situation,
                q_len=(5, 1, 7),
                k_len=(7, 1, 131),
                kind=MASKS,
                size=SIZES,
                mode=NONE,
            ),
            large_scores,
        )
    },
    laws={
        "The weights of each query sum to 1.": sums_to_one(one_query, large_scores),
    },
)
