"""Probes of the padding mask, and of the softmax that uses it."""

from typing import Any

from torch import Tensor

from glassformer.tools.learn.attention_probes import sums_to_one
from glassformer.tools.learn.check import Check, Probe, Results, Solution, probe
from glassformer.tools.learn.inputs import given, numbers
from glassformer.tools.learn.situations import (
    ELSEWHERE,
    IDS,
    MASKS,
    NO_NUMBERS,
    NONE,
    PADDING,
    SIZES,
    Situation,
    situations,
)


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
    return _softmax(solution, numbers(2, 3, 5, 7, name="scores"), None)


def in_situation(solution: Solution, s: Situation) -> dict[str, Any]:
    scores = s.numbers("scores", s.batch, 1, s.q_len, s.k_len)
    return {"weights": solution.masked_softmax(scores, *s.mask(s.q_len, s.k_len, s.kind))}


def tokens(solution: Solution, s: Situation) -> dict[str, Any]:
    return {"mask": solution.padding_mask(s.tokens("tokens", s.length, 10, s.pad), s.pad)}


def huge_scores(solution: Solution) -> dict[str, Any]:
    """scores [[-2e9, -2e9 - 1, 3e9]], mask [[True, True, False]]"""
    values = _softmax(solution, given([[-2e9, -2e9 - 1, 3e9]]), given([[True, True, False]]))
    return {"weights": values["weights"].float()}  # a logarithm has no more digits there


def _softmax(solution: Solution, scores: Tensor, mask: Tensor | None) -> dict[str, Any]:
    return {"weights": solution.masked_softmax(scores, mask)}


def hidden_weight(results: Results) -> str | None:
    for each in (ONE_QUERY, FAR, huge_scores):
        if (weight := results[each.__name__]["weights"].flat[2]) != 0:
            return f"With {each.__doc__}, the hidden third key gets {weight:.3g}."
    return None


ONE_QUERY = _weighted([1.0, 2.0, 3.0], [True, True, False])
FAR = _weighted([-30_000.0, -30_001.0, 30_000.0], [True, True, False])
CHECK = Check(
    probes={
        "padding_mask": (
            _masked([[5, 6, 0]], 0),
            *situations(
                "tokens",
                tokens,
                **NO_NUMBERS,
                **IDS,
                device=ELSEWHERE,
                pad=(0, 9, 4),
                length=(5, 1, 1100),
                padding=PADDING,
            ),
        ),
        "masked_softmax": (
            ONE_QUERY,
            no_mask,
            _weighted([1.0, 2.0], [False, False]),
            *situations(
                "scores",
                in_situation,
                q_len=(5, 1),
                k_len=(7, 1, 1100),
                kind=MASKS,
                size=SIZES,
                mode=NONE,
            ),
            *(FAR, huge_scores),
        ),
    },
    laws={
        "A hidden key gets no weight.": hidden_weight,
        "The weights of each query sum to 1.": sums_to_one(ONE_QUERY, no_mask, FAR),
    },
)
