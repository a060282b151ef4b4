"""Probes of beam search and its length penalty."""

import math
from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.protocols import Vocabulary
from glassformer.tools.learn.check import Check, Probe, Results, Solution, listed, probe
from glassformer.tools.learn.inputs import given, numbers
from glassformer.tools.learn.lessons.greedy.plain import greedy
from glassformer.tools.learn.table_model import TableModel

__all__ = ["CHECK"]

BOS, EOS = 1, 2
IDS = Vocabulary(bos_id=BOS, eos_id=EOS)


def lengths(solution: Solution) -> dict[str, Any]:
    """lengths 1, 2, 7 and 13, alpha 0, 0.5, 0.6 and 2"""
    values = [
        [float(solution.penalty(length, alpha)) for alpha in (0.0, 0.5, 0.6, 2.0)]
        for length in (1, 2, 7, 13)
    ]
    return {"penalties": torch.tensor(values)}


def first_step(solution: Solution) -> dict[str, Any]:
    """totals [0], logits log [[0.2, 0.5, 0.3]], count 2"""
    return _continued(solution, given([0.0]), given(torch.tensor([[0.2, 0.5, 0.3]]).log()), 2)


def three_hypotheses(solution: Solution) -> dict[str, Any]:
    """totals [-1, -1.5, -2], logits (3, 7), count 6"""
    return _continued(solution, given([-1.0, -1.5, -2.0]), numbers(3, 7), 6)


def few_tokens(solution: Solution) -> dict[str, Any]:
    """totals [-1], logits (1, 3), count 8: there are only three continuations"""
    return _continued(solution, given([-1.0]), numbers(1, 3), 8)


def _continued(solution: Solution, totals: Tensor, logits: Tensor, count: int) -> dict[str, Any]:
    best = solution.best_continuations(totals, logits, count)
    return {
        "log-probabilities": torch.tensor([float(each[0]) for each in best]),
        "rows": torch.tensor([int(each[1]) for each in best]),
        "tokens": torch.tensor([int(each[2]) for each in best]),
    }


def two_ways(solution: Solution) -> dict[str, Any]:
    """beam 2, alpha 0.6; after bos 1 come 4 (0.6) and 5 (0.4), after 4 the end 2 (0.5), 5 ends"""
    rows = {
        1: [0.0, 0.0, 0.0, 0.0, 0.6, 0.4],
        4: [0.0, 0.0, 0.5, 0.3, 0.0, 0.2],
        5: [0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
    }
    return _searched(solution, TableModel.table(rows), beam=2, alpha=0.6, max_length=5)


def cut(solution: Solution) -> dict[str, Any]:
    """beam 2, alpha 0.6, at most 4 tokens; no hypothesis ends"""
    language = _random(2)
    language.by_place = language.by_place - 50 * (torch.arange(7) == EOS)
    return _searched(solution, language, beam=2, alpha=0.6, max_length=4)


def _random(seed: int) -> TableModel:
    return TableModel.random(1, 7, seed=seed)


def _searched(
    solution: Solution, language: TableModel, *, beam: int, alpha: float, max_length: int
) -> dict[str, Any]:
    target, score = solution.beam_search(
        language.step,
        language.state(),
        max_length=max_length,
        beam=beam,
        alpha=alpha,
        vocabulary=IDS,
    )
    tokens = [int(token) for token in target]
    return {"target": str(tokens), "score": torch.tensor(float(score))}


def _language(seed: int, *, beam: int, alpha: float, max_length: int) -> Probe:
    settings: dict[str, Any] = {"beam": beam, "alpha": alpha, "max_length": max_length}
    return probe(
        f"{listed(**settings)}, vocabulary 7, bos 1, eos 2; random logits {seed}",
        lambda solution: _searched(solution, _random(seed), **settings),
    )


def not_greedy(results: Results) -> str | None:
    """The target of a beam of 1, if greedy search finds another."""
    language = _random(9)
    lengths = torch.tensor([9])
    [target] = greedy(language.step, language.state(), max_lengths=lengths, vocabulary=IDS)
    found = str(results[BEAM_OF_ONE.__name__]["target"])
    return None if found == str(target) else f"It finds {found}, greedy search {target}."


def positive(results: Results) -> str | None:
    for values in results.values():
        if "score" in values and not values["score"] <= 0:
            return f"The score is {values['score']:.3g}."
    return None


def not_one(results: Results) -> str | None:
    first = results["lengths"]["penalties"][0, 1]
    return None if math.isclose(first, 1) else f"Length 1 has the penalty {first:.3g}."


BEAM_OF_ONE = _language(9, beam=1, alpha=2.0, max_length=9)
CHECK = Check(
    probes={
        "penalty": (lengths,),
        "best_continuations": (first_step, three_hypotheses, few_tokens),
        "beam_search": (
            *(two_ways, BEAM_OF_ONE, cut),
            _language(44, beam=3, alpha=2.0, max_length=9),
            _language(40, beam=3, alpha=2.0, max_length=9),
            _language(53, beam=2, alpha=2.0, max_length=8),
            _language(68, beam=3, alpha=2.0, max_length=9),
            _language(30, beam=3, alpha=0.6, max_length=8),
        ),
    },
    laws={
        "A beam of 1 is greedy search.": not_greedy,
        "A logarithm of a probability is never above 0, and so no score is.": positive,
        "The penalty of length 1 is 1.": not_one,
    },
)
