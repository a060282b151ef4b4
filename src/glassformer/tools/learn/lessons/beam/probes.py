"""Probes of beam search and its length penalty."""

import math
from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.greedy import greedy
from glassformer.decoding.protocols import Candidate
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.tools.learn.check import (
    Check,
    Probe,
    Results,
    Solution,
    listed,
    probe,
    unpacked,
)
from glassformer.tools.learn.inputs import given
from glassformer.tools.learn.situations import NO_NUMBERS, NONE, Situation, situations
from glassformer.tools.learn.table_model import RULES, TableModel

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
    """one hypothesis, log-probability 0; log [0.5, 0.3, 0.2] of the tokens 8, 4 and 6; count 2"""
    likely = torch.tensor([[0.5, 0.3, 0.2]]).log()
    return _continued(solution, [0.0], likely, ids=torch.tensor([[8, 4, 6]]), count=2)


def _continued(
    solution: Solution, totals: list[float], likely: Tensor, *, ids: Tensor, count: int
) -> dict[str, Any]:
    live = [Candidate((20, 21 + row), total, row) for row, total in enumerate(totals)]
    best = solution.best_continuations(live, given(likely.detach()), given(ids), count=count)
    return {
        "log-probabilities": torch.tensor([float(each.log_probability) for each in best]),
        "rows": torch.tensor([int(each.row) for each in best]),
        "targets": str([[int(token) for token in each.tokens] for each in best]),
    }


def two_ends(solution: Solution) -> dict[str, Any]:
    """beam 2, alpha 0.6, eos 2; candidates (5, 7, 2), (5, 4, 3), (6, 7, 7), (6, 4, 2)"""
    tokens = ((5, 7, 2), (5, 4, 3), (6, 7, 7), (6, 4, 2))
    best = [Candidate(each, -1.0 - row, row // 2) for row, each in enumerate(tokens)]
    answer = solution.divide(best, EOS, beam=2, length_penalty=0.6)
    finished, live = unpacked(answer, "the finished targets", "the candidates that go on")
    return {
        "finished targets": str([(*map(int, x.tokens), bool(x.finished)) for x in finished]),
        "scores": torch.tensor([[float(x.score), float(x.log_probability)] for x in finished]),
        "candidates that go on": str([(*map(int, x.tokens), int(x.row)) for x in live]),
    }


def penalised(solution: Solution, s: Situation) -> dict[str, Any]:
    return {"penalty": float(solution.penalty(s.length, s.alpha))}


def continued(solution: Solution, s: Situation) -> dict[str, Any]:
    totals = [-1.0 - row for row in range(s.hypotheses)]
    likely = s.numbers("log_probabilities", s.hypotheses, s.each) - 9
    ids = torch.arange(3, 3 + s.each).repeat(s.hypotheses, 1)
    return _continued(solution, totals, likely, ids=ids, count=s.count)


def searched(solution: Solution, s: Situation) -> dict[str, Any]:
    language = TableModel.random(s.batch, 7, seed=50 + s.earlier)
    lengths = [s.longest if row % 2 else 4 for row in range(s.batch, 0, -1)]
    options = {"beam": s.beam, "length_penalty": s.alpha, "n_best": min(s.best, s.beam)}
    rules = OutputRules(given(lengths), IDS, processors=RULES[s.rules])
    return _answered(solution, language, rules, **options)


def two_ways(solution: Solution) -> dict[str, Any]:
    """beam 2, alpha 0.6; after bos 1 come 4 (0.6) and 5 (0.4), after 4 the end 2 (0.5), 5 ends"""
    rows = {
        1: [0.0, 0.0, 0.0, 0.0, 0.6, 0.4],
        4: [0.0, 0.0, 0.5, 0.3, 0.0, 0.2],
        5: [0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
    }
    return _searched(solution, TableModel.table(rows), [5], beam=2, alpha=0.6)


def cut(solution: Solution) -> dict[str, Any]:
    """beam 2, alpha 0.6, at most 4 tokens; no hypothesis ends"""
    language = _random(2)
    language.by_place = language.by_place - 50 * (torch.arange(7) == EOS)
    return _searched(solution, language, [4], beam=2, alpha=0.6)


def two_sentences(solution: Solution) -> dict[str, Any]:
    """two sentences of at most 8 and 5 tokens, beam 2, alpha 0.6; random logits"""
    language = TableModel.random(2, 7, seed=7)
    return _searched(solution, language, [8, 5], beam=2, alpha=0.6)


def three_targets(solution: Solution) -> dict[str, Any]:
    """the three best targets, beam 3, alpha 0.6, at most 6 tokens; random logits"""
    return _searched(solution, _random(5), [6], beam=3, alpha=0.6, n_best=3)


def _random(seed: int) -> TableModel:
    return TableModel.random(1, 7, seed=seed)


def _searched(
    solution: Solution,
    language: TableModel,
    max_lengths: list[int],
    *,
    beam: int,
    alpha: float,
    n_best: int = 1,
) -> dict[str, Any]:
    rules = OutputRules(given(max_lengths), IDS)
    return _answered(solution, language, rules, beam=beam, length_penalty=alpha, n_best=n_best)


def _answered(
    solution: Solution, language: TableModel, rules: OutputRules, **options: Any
) -> dict[str, Any]:
    answers = solution.beam_search(language.step, language.state(), rules, **options)
    every = [hypothesis for answer in answers for hypothesis in answer]
    return {
        "targets": str([[[int(token) for token in x.tokens] for x in each] for each in answers]),
        "finished": str([bool(hypothesis.finished) for hypothesis in every]),
        "scores": torch.tensor([float(hypothesis.score) for hypothesis in every]),
        "log-probabilities": torch.tensor([float(x.log_probability) for x in every]),
    }


def _language(seed: int, *, beam: int, alpha: float, max_length: int) -> Probe:
    settings = listed(beam=beam, alpha=alpha, max_length=max_length)
    return probe(
        f"{settings}, vocabulary 7, bos 1, eos 2; random logits {seed}",
        lambda solution: _searched(solution, _random(seed), [max_length], beam=beam, alpha=alpha),
    )


def not_greedy(results: Results) -> str | None:
    """Evidence with the target of a beam of 1, if greedy search finds a different target."""
    language = _random(9)
    [[best]] = greedy(language.step, language.state(), OutputRules(torch.tensor([9]), IDS))
    targets, expected = str(results[BEAM_OF_ONE.__name__]["targets"]), str([[[*best.tokens]]])
    return None if targets == expected else f"It finds {targets}, greedy search {expected}."


def positive(results: Results) -> str | None:
    for values in results.values():
        if "scores" in values and (values["scores"] > 0).any():
            return f"The score is {values['scores'].max():.3g}."
    return None


def not_one(results: Results) -> str | None:
    first = results["lengths"]["penalties"][0, 1]
    return None if math.isclose(first, 1) else f"Length 1 has the penalty {first:.3g}."


BEAM_OF_ONE = _language(9, beam=1, alpha=2.0, max_length=9)
SEARCH: dict[str, Any] = {**NO_NUMBERS, "layout": NONE}
CHECK = Check(
    probes={
        "penalty": (
            lengths,
            *situations(
                "a penalty",
                penalised,
                **SEARCH,
                batch=(1,),
                alpha=(0.6, 0.0, 1.0),
                length=(7, 1, 2, 1100),
            ),
        ),
        "best_continuations": (
            first_step,
            *situations(
                "continuations",
                continued,
                **SEARCH,
                batch=(1,),
                hypotheses=(3, 1, 2),
                each=(7, 3),
                count=(6, 1, 99),
            ),
        ),
        "divide": (two_ends,),
        "beam_search": (
            *(two_ways, BEAM_OF_ONE, cut, two_sentences, three_targets),
            _language(30, beam=2, alpha=2.0, max_length=8),
            _language(77, beam=3, alpha=2.0, max_length=9),
            _language(10, beam=2, alpha=2.0, max_length=8),
            _language(263, beam=3, alpha=2.0, max_length=9),
            _language(30, beam=3, alpha=0.6, max_length=8),
            *situations(
                "a beam",
                searched,
                **SEARCH,
                batch=(2, 1, 3),
                beam=(2, 1, 3),
                alpha=(0.6, 0.0, 5.0),
                longest=(6, 1, 14),
                best=(1, 3),
                rules=tuple(RULES),
            ),
        ),
    },
    laws={
        "A beam of 1 is greedy search.": not_greedy,
        "A logarithm of a probability is never above 0, and so no score is.": positive,
        "The penalty of length 1 is 1.": not_one,
    },
)
