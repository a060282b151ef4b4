"""Probes of scaled dot-product attention."""

from typing import Any

import torch
from torch import Tensor

from glassformer.tools.learn.attention_probes import sums_to_one
from glassformer.tools.learn.check import Check, Probe, Solution, probe, unchanged, unpacked
from glassformer.tools.learn.inputs import given, hides, numbers


def _attended(text: str, mask: Tensor | None = None, *, reverse: bool = False) -> Probe:
    """A probe with random inputs; keys and values may come in reversed order."""

    def attended(solution: Solution) -> dict[str, Tensor]:
        query = numbers(2, 3, 5, 11)
        key, value = numbers(2, 3, 7, 11, seed=1), numbers(2, 3, 7, 13, seed=2)
        if reverse:
            key, value = key.flip(-2), value.flip(-2)
        return _called(solution, query, key, value, *([] if mask is None else [given(mask)]))

    return probe(text, attended)


def one_query(solution: Solution) -> dict[str, Tensor]:
    """query [[3, 1]], keys [[1, 0], [0, 1]], values [[10], [20]]"""
    return _called(solution, given([[3.0, 1.0]]), given(torch.eye(2)), given([[10.0], [20.0]]))


def large_scores(solution: Solution) -> dict[str, Tensor]:
    """query [[300, 100]], keys [[-300, 0], [-400, 0], [1, 1]], the last key hidden"""
    query, key = given([[300.0, 100.0]]), given([[-300.0, 0.0], [-400.0, 0.0], [1.0, 1.0]])
    return _called(solution, query, key, numbers(3, 5), given([[True, True, False]]))


def _called(solution: Solution, *inputs: Tensor) -> dict[str, Any]:
    answer = solution.scaled_dot_product_attention(*inputs)
    output, weights = unpacked(answer, "output", "weights")
    return {"weights": weights, "output": output}


RANDOM = "query (2, 3, 5, 11), key (2, 3, 7, 11), value (2, 3, 7, 13)"
ALL_KEYS = _attended(RANDOM)
REVERSED = _attended(f"{RANDOM}, keys and values in reversed order", reverse=True)
PADDED = _attended(
    f"{RANDOM}, and a mask (2, 1, 1, 7) that hides the last three keys of the second sentence",
    hides(7, 3),
)
EMPTY_ROW = f"{RANDOM}, and a mask (5, 7) that hides all keys from the second query"
SECOND_QUERY = (torch.arange(5) == 1)[:, None].expand(5, 7)
CHECK = Check(
    probes={
        "scaled_dot_product_attention": (
            one_query,
            ALL_KEYS,
            PADDED,
            _attended(EMPTY_ROW, ~SECOND_QUERY),
            large_scores,
            REVERSED,
        )
    },
    laws={
        "The weights of each query sum to 1.": sums_to_one(
            one_query, ALL_KEYS, PADDED, large_scores
        ),
        "Attention does not know the order of the keys.": unchanged(
            ALL_KEYS, REVERSED, "With keys and values in reversed order the output changes by {}."
        ),
    },
)
