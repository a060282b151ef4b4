"""Probes of the padding mask, and of the softmax that uses it."""

from typing import Any

from torch import Tensor

from glassformer.tools.learn.attention_probes import sums_to_one
from glassformer.tools.learn.check import Check, Probe, Results, Solution, probe
from glassformer.tools.learn.inputs import given, hides, numbers


def _masked(tokens: list[list[int]], pad: int) -> Probe:
    return probe(
        f"tokens {tokens}, pad {pad}",
        lambda solution: {"mask": solution.padding_mask(given(tokens), pad)},
    )


def _weighted(scores: list[float], mask: list[bool]) -> Probe:
    """A probe of the softmax with one query."""
    return probe(
        f"scores [{scores}], mask [{mask}]",
        lambda solution: _softmax(solution, given([scores]), given([mask])),
    )


def no_mask(solution: Solution) -> dict[str, Any]:
    """scores (2, 3, 5, 7), no mask"""
    return _softmax(solution, numbers(2, 3, 5, 7), None)


def batch(solution: Solution) -> dict[str, Any]:
    """scores (2, 3, 5, 7), mask (2, 1, 1, 7) that hides three keys of the second sentence"""
    return _softmax(solution, numbers(2, 3, 5, 7), hides(7, 3))


def huge_scores(solution: Solution) -> dict[str, Any]:
    """scores [[-2e9, -2e9 - 1, 3e9]], mask [[True, True, False]]"""
    values = _softmax(solution, given([[-2e9, -2e9 - 1, 3e9]]), given([[True, True, False]]))
    return {"weights": values["weights"].float()}  # a logarithm has no more digits there


def _softmax(solution: Solution, scores: Tensor, mask: Tensor | None) -> dict[str, Any]:
    return {"weights": solution.masked_softmax(scores, mask)}


def hidden_weight(results: Results) -> str | None:
    weight = results[ONE_QUERY.__name__]["weights"].flat[2]
    return None if weight == 0 else f"With scores 1, 2, 3 the hidden third key gets {weight:.3g}."


ONE_QUERY = _weighted([1.0, 2.0, 3.0], [True, True, False])
CHECK = Check(
    probes={
        "padding_mask": (
            _masked([[5, 6, 0]], 0),
            _masked([[1, 0, 9], [1, 9, 9]], 9),
            _masked([[0, 0, 5, 6], [7, 0, 8, 0]], 0),
        ),
        "masked_softmax": (
            ONE_QUERY,
            no_mask,
            batch,
            _weighted([-30_000.0, -30_001.0, 30_000.0], [True, True, False]),
            huge_scores,
            _weighted([1.0, 2.0], [False, False]),
        ),
    },
    laws={
        "A hidden key gets no weight.": hidden_weight,
        "The weights of each query sum to 1.": sums_to_one(ONE_QUERY, no_mask, batch),
    },
)
