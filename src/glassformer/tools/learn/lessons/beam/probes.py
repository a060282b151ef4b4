"""Probes of beam search and its length penalty."""

from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.protocols import Candidate
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.tools.learn.check import Solution, unpacked
from glassformer.tools.learn.holes import Hole, axis
from glassformer.tools.learn.inputs import given
from glassformer.tools.learn.situations import Situation, situations
from glassformer.tools.learn.table_model import SEARCH, TableModel, rules_of, shown

IDS = Vocabulary(bos_id=1, eos_id=2)


def live(s: Situation, _: str) -> list[Candidate]:
    return [Candidate((20, 21 + row), -1.0 - row, row) for row in range(s.hypotheses)]


def ids(s: Situation, name: str) -> Tensor:
    return given(torch.arange(3, 3 + s.each).repeat(s.hypotheses, 1), name)


def continued(best: Any, _: Situation) -> dict[str, Any]:
    return {
        "log-probabilities": torch.tensor([float(each.log_probability) for each in best]),
        "rows": torch.tensor([int(each.row) for each in best]),
        "targets": str([[int(token) for token in each.tokens] for each in best]),
    }


def best(s: Situation, _: str) -> list[Candidate]:
    """Candidates in their order, of which every second or third ends."""
    return [
        Candidate((5, row, 2 if row % s.each == 1 else 7), -1.0 - row, row // 2)
        for row in range(2 * s.beam)
    ]


def divided(answer: Any, _: Situation) -> dict[str, Any]:
    finished, live = unpacked(answer, "the finished targets", "the candidates that go on")
    return {
        "finished targets": str([(*map(int, x.tokens), bool(x.finished)) for x in finished]),
        "scores": torch.tensor([[float(x.score), float(x.log_probability)] for x in finished]),
        "candidates that go on": str([(*map(int, x.tokens), int(x.row)) for x in live]),
    }


def two_ways(solution: Solution) -> dict[str, Any]:
    """beam 2, alpha 0.6; after bos 1 come 4 (0.6) and 5 (0.4), after 4 the end 2 (0.5), 5 ends"""
    rows = {
        1: [0.0, 0.0, 0.0, 0.0, 0.6, 0.4],
        4: [0.0, 0.0, 0.5, 0.3, 0.0, 0.2],
        5: [0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
    }
    rules = OutputRules(given([5]), IDS)
    return _searched(solution, TableModel.table(rows), rules, beam=2, length_penalty=0.6)


def many(solution: Solution) -> dict[str, Any]:
    """8 sentences of at most 14 or 4 tokens, beam 3, alpha 2, 3 targets of each; random logits"""
    axes = {"batch": 8, "longest": 14, "beam": 3, "alpha": 2.0, "best": 3, "rules": "", "end": 0}
    return searched(solution, Situation(axes, {}))


def searched(solution: Solution, s: Situation) -> dict[str, Any]:
    language = TableModel.random(s.batch, 7, seed=50 + s.earlier)
    language.by_place[..., IDS.eos_id] += s.end
    lengths = [s.longest if row % 2 else 4 for row in range(s.batch, 0, -1)]
    options = {"beam": s.beam, "length_penalty": s.alpha, "n_best": min(s.best, s.beam)}
    return _searched(solution, language, rules_of(s, lengths, IDS), **options)


def _searched(
    solution: Solution, language: TableModel, rules: OutputRules, **options: Any
) -> dict[str, Any]:
    return shown(solution.beam_search(language.step, language.state(), rules, **options))


PENALTY = Hole("penalty", lambda penalty, _: {"penalty": float(penalty)}, length=axis, alpha=axis)
CONTINUED = Hole(
    "best_continuations",
    continued,
    options=("count",),
    live=live,
    log_probabilities="hypotheses each",
    ids=ids,
)
DIVIDED = Hole("divide", divided, options=("beam", "length_penalty"), best=best, eos=axis)
PROBES = (
    PENALTY.probes(
        PENALTY.example(length=1, alpha=0.6), alpha=(0.6, 0.0, 0.5, 2.0), length=(7, 1, 2, 1100)
    ),
    CONTINUED.probes(
        CONTINUED.example(
            live=[Candidate((20, 21), 0.0, 0), Candidate((20, 22), -3.0, 1)],
            log_probabilities=[[-0.7, -1.2, -1.6], [-0.2, -2.0, -3.0]],
            ids=[[8, 4, 6], [5, 8, 4]],
            count=3,
        ),
        batch=(1,),
        type=("float64",),
        gradients=("no gradient is wanted",),
        hypotheses=(3, 1, 2),
        each=(7, 3),
        count=(6, 1, 99),
    ),
    DIVIDED.probes(
        beam=(2, 1, 3),
        each=(2, 3),
        eos=(2, 7),
        length_penalty=(0.6, 0.0, 2.0),
    ),
    (
        "beam_search",
        (
            *(two_ways, many),
            *situations(
                "a beam",
                searched,
                **SEARCH,
                type=("float64",),
                batch=(2, 1, 3),
                beam=(2, 1, 3),
                alpha=(0.6, 0.0, 5.0),
                longest=(6, 1, 14),
                best=(1, 3),
                end=(0, 1, -2),
            ),
        ),
    ),
)
