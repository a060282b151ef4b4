"""What can go wrong in beam search and its length penalty."""

import math
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.beam import penalty as right_penalty
from glassformer.decoding.protocols import S, StepFunction, Vocabulary
from glassformer.learn.check import Check, Faults, Results, Solution, numbers
from glassformer.learn.lessons.beam.plain import best_continuations as right_continuations
from glassformer.learn.lessons.greedy.plain import greedy
from glassformer.learn.table_model import TableModel

__all__ = ["CHECK"]

BOS, EOS = 1, 2
IDS = Vocabulary(bos_id=BOS, eos_id=EOS)
Target = tuple[float, list[int]]


def reference(faults: Faults) -> Solution:
    def penalty(length: Any, alpha: float) -> Any:  # the package's beam search hands over tensors
        bases = {
            "penalty-of-length": length / 6,
            "penalty-plain-length": length * 1.0,
            "penalty-not-divided": 5.0 + length,
        }
        base = bases.get(faults.get("base", ""), (5 + length) / 6)
        if faults.get("power") == "penalty-factor":
            return base * alpha
        sign = -1 if faults.get("power") == "penalty-sign" else 1
        return base ** (sign * alpha)

    def best_continuations(
        totals: Tensor, logits: Tensor, count: int
    ) -> list[tuple[float, int, int]]:
        return _continuations(totals, logits, count, faults)

    def beam_search(step: StepFunction[S], state: S, **options: Any) -> tuple[list[int], float]:
        return _Search(faults, **options).run(step, state)

    return SimpleNamespace(
        penalty=penalty, best_continuations=best_continuations, beam_search=beam_search
    )


def _continuations(
    totals: Tensor, logits: Tensor, count: int, faults: Faults
) -> list[tuple[float, int, int]]:
    added = logits.log_softmax(dim=-1)
    if faults.get("sums") == "continue-logits":
        added = logits
    if faults.get("sums") == "continue-probabilities":
        added = logits.softmax(dim=-1)
    sums = added if faults.get("totals") else totals[:, None] + added
    if faults.get("order") == "continue-row-by-row":
        share = max(1, count // len(totals))
        kept = sums.topk(min(share, sums.size(1)), dim=1)
        offsets = torch.arange(len(sums))[:, None] * sums.size(1)
        best, places = kept.values.flatten(), (kept.indices + offsets).flatten()
    else:
        best, places = sums.flatten().topk(min(count, sums.numel()))
    divisor = len(totals) if faults.get("places") == "continue-over-rows" else logits.size(-1)
    rows, tokens = (places // divisor).tolist(), (places % divisor).tolist()
    if faults.get("places") == "continue-exchanged":
        rows, tokens = tokens, rows
    return list(zip(best.tolist(), rows, tokens, strict=True))


class _Search:
    """The search of `plain.beam_search`, with switches."""

    def __init__(
        self, faults: Faults, *, max_length: int, beam: int, alpha: float, vocabulary: Vocabulary
    ) -> None:
        self.faults, self.beam, self.alpha = faults, beam, alpha
        self.bos, self.eos = vocabulary.bos_id, vocabulary.eos_id
        more = {"beam-one-too-many": 1, "beam-one-too-few": -1}.get(faults.get("length", ""), 0)
        self.max_length = max_length + more
        self.finished: list[Target] = []
        self.led = False

    def run(self, step: StepFunction[S], state: S) -> tuple[list[int], float]:
        copies = self.beam if "start" in self.faults else 1
        state = state.select(torch.zeros(copies, dtype=torch.int64))
        live: list[list[int]] = [[] for _ in range(copies)]
        last, totals = torch.full((copies,), self.bos), torch.zeros(copies, dtype=torch.float64)
        length = 0
        while length < self.max_length and live and not self.stops():
            length += 1
            logits, state = step(last, state)
            best = self.best(totals, logits)
            self.set_aside(best, live, length)
            rest = [each for each in best if each[2] != self.eos][: self.beam]
            parents = [parent for _, parent, _ in rest]
            live = [
                [*live[self.place(i, parent, len(live))], token]
                for i, (_, parent, token) in enumerate(rest)
            ]
            state = self.rows(state, parents)
            last = torch.tensor([token for _, _, token in rest], dtype=torch.int64)
            totals = torch.tensor([total for total, _, _ in rest], dtype=torch.float64)
        cut = [(self.score(float(totals[0]), length), live[0])] if live else []
        return self.answer(cut)

    def stops(self) -> bool:
        stop, full = self.faults.get("stop"), len(self.finished) >= self.beam
        if stop == "beam-stops-at-first-end":
            return bool(self.finished)
        if stop == "beam-never-stops-early":
            return False
        return full and (self.led or stop == "beam-stops-at-full")

    def best(self, totals: Tensor, logits: Tensor) -> list[tuple[float, int, int]]:
        kept = 1 if self.faults.get("kept") == "beam-ends-take-places" else 2
        return right_continuations(totals, logits, kept * self.beam)

    def set_aside(
        self, best: list[tuple[float, int, int]], live: list[list[int]], length: int
    ) -> None:
        length -= "counted" in self.faults
        end = [self.eos] if "last" in self.faults else []
        self.finished += [
            (self.score(total, length), live[parent] + end)
            for total, parent, token in best[: self.beam]
            if token == self.eos
        ]
        self.led = self.led or best[0][2] == self.eos

    def place(self, i: int, parent: int, count: int) -> int:
        return min(i, count - 1) if "tokens" in self.faults else parent

    def rows(self, state: S, parents: list[int]) -> S:
        rows = torch.tensor(parents, dtype=torch.int64)
        if self.faults.get("rows") == "beam-rows-not-selected":
            field = "sentences" if hasattr(state, "sentences") else "memory_mask"  # or a model's
            count = len(getattr(state, field))
            rows = torch.arange(len(rows)).clamp(max=count - 1)
        return state.select(rows)

    def score(self, total: float, length: int) -> float:
        divisor = {
            "beam-not-penalised": 1.0,
            "beam-multiplied": 1 / right_penalty(length, self.alpha),
            "beam-mean": max(float(length), 1.0),
        }.get(self.faults.get("rank", ""), right_penalty(length, self.alpha))
        return total / divisor

    def answer(self, cut: list[Target]) -> tuple[list[int], float]:
        targets = self.finished or cut
        if self.faults.get("answer") == "beam-unfinished-compete":
            targets = self.finished + cut
        score, target = max(targets)
        return ([self.bos] if "first" in self.faults else []) + target, score


def lengths(solution: Solution) -> dict[str, Any]:
    """lengths 1, 2, 7 and 13, alpha 0, 0.5, 0.6 and 2"""
    values = [
        [float(solution.penalty(length, alpha)) for alpha in (0.0, 0.5, 0.6, 2.0)]
        for length in (1, 2, 7, 13)
    ]
    return {"penalties": torch.tensor(values, dtype=torch.float64)}


def first_step(solution: Solution) -> dict[str, Any]:
    """totals [0], logits log [[0.2, 0.5, 0.3]], count 2"""
    logits = torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64).log()
    return _continued(solution, torch.zeros(1, dtype=torch.float64), logits, 2)


def three_hypotheses(solution: Solution) -> dict[str, Any]:
    """totals [-1, -1.5, -2], logits (3, 7), count 6"""
    totals = torch.tensor([-1.0, -1.5, -2.0], dtype=torch.float64)
    return _continued(solution, totals, numbers(3, 7), 6)


def few_tokens(solution: Solution) -> dict[str, Any]:
    """totals [-1], logits (1, 3), count 8: there are only three continuations"""
    return _continued(solution, -torch.ones(1, dtype=torch.float64), numbers(1, 3), 8)


def _continued(solution: Solution, totals: Tensor, logits: Tensor, count: int) -> dict[str, Any]:
    copies = totals.clone(), logits.clone()
    best = solution.best_continuations(totals, logits, count)
    changed = not (torch.equal(copies[0], totals) and torch.equal(copies[1], logits))
    return {
        "log-probabilities": torch.tensor([float(each[0]) for each in best]).double(),
        "rows": torch.tensor([int(each[1]) for each in best]),
        "tokens": torch.tensor([int(each[2]) for each in best]),
        "inputs are changed": changed,
    }


def two_ways(solution: Solution) -> dict[str, Any]:
    """beam 2, alpha 0.6; after bos 1 come 4 (0.6) and 5 (0.4), after 4 the end 2 (0.5), 5 ends"""
    rows = {
        1: [0.0, 0.0, 0.0, 0.0, 0.6, 0.4],
        4: [0.0, 0.0, 0.5, 0.3, 0.0, 0.2],
        5: [0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
    }
    return _searched(solution, TableModel.table(rows), beam=2, alpha=0.6, max_length=5)


def a_beam_of_one(solution: Solution) -> dict[str, Any]:
    """beam 1, alpha 2, vocabulary 7, bos 1, eos 2, at most 9 tokens"""
    return _searched(solution, _random(9), beam=1, alpha=2.0, max_length=9)


def cut(solution: Solution) -> dict[str, Any]:
    """beam 2, alpha 0.6, at most 4 tokens; no hypothesis ends"""
    language = _random(2)
    language.by_place[..., EOS] -= 50
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
    return {"target": str(tokens), "score": torch.tensor(float(score)).double()}


def _probe(seed: int, *, beam: int, alpha: float, max_length: int) -> Any:
    def probe(solution: Solution) -> dict[str, Any]:
        language = _random(seed)
        return _searched(solution, language, beam=beam, alpha=alpha, max_length=max_length)

    probe.__name__ = f"beam_of_{beam}_language_{seed}"
    probe.__doc__ = (
        f"beam {beam}, alpha {alpha}, vocabulary 7, bos 1, eos 2, at most {max_length} tokens"
    )
    return probe


def not_greedy(results: Results) -> str | None:
    """The target of a beam of 1, if greedy search finds another."""
    if "a_beam_of_one" not in results:
        return None
    language = _random(9)
    lengths = torch.tensor([9])
    [target] = greedy(language.step, language.state(), max_lengths=lengths, vocabulary=IDS)
    found = str(results["a_beam_of_one"]["target"])
    return None if found == str(target) else f"It finds {found}, greedy search {target}."


def positive(results: Results) -> str | None:
    for values in results.values():
        if "score" in values and not values["score"] <= 0:
            return f"The score is {values['score']:.3g}."
    return None


def not_one(results: Results) -> str | None:
    if "lengths" not in results:
        return None
    first = results["lengths"]["penalties"][0, 1]
    return None if math.isclose(first, 1) else f"Length 1 has the penalty {first:.3g}."


SEARCHES = (
    _probe(44, beam=3, alpha=2.0, max_length=9),
    _probe(40, beam=3, alpha=2.0, max_length=9),
    _probe(53, beam=2, alpha=2.0, max_length=8),
    _probe(68, beam=3, alpha=2.0, max_length=9),
    _probe(30, beam=3, alpha=0.6, max_length=8),
)

CHECK = Check(
    reference=reference,
    probes={
        "penalty": (lengths,),
        "best_continuations": (first_step, three_hypotheses, few_tokens),
        "beam_search": (two_ways, a_beam_of_one, cut, *SEARCHES),
    },
    laws={
        "A beam of 1 is greedy search.": not_greedy,
        "A logarithm of a probability is never above 0, and so no score is.": positive,
        "The penalty of length 1 is 1.": not_one,
    },
)
