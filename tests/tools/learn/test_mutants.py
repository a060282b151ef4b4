"""The law of mutants: each that rules make of the right solutions is found, or is listed as right.

``make test`` takes three of each lesson, and a nightly run takes thirty.
"""

import signal
from collections import Counter

import pytest
import torch

from glassformer.tools.learn.check import probes_of, values_of
from glassformer.tools.learn.edits import solution
from glassformer.tools.learn.judge import UNSTEADY, Judge
from glassformer.tools.learn.lesson import EVERY, lesson
from glassformer.tools.learn.observed import equal, same
from glassformer.tools.learn.worker import TWICE
from tests.mutants import mutants

SECONDS = 2  # of computing, for a mutant that runs for ever
ALL, SOME = 30, 3
RIGHT = {
    "_first(": "the sizes of one sentence are those of all sentences",
    "_cached(None, (55, 55), lambda: tokens.size(1)": "the length of an equal shape is equal",
    "lambda: len(targets)": "it is asked for once",
    ".tril_()": "the tensor is new, so that nobody sees a change in place",
    "variance.add_(epsilon)": "the tensor is new",
    "clamp_(": "the tensor is new",
    "unbiased_square.sqrt_()": "the tensor is new",
    "total.add_(": "the tensor is new",
    "torch.ones(length, length, dtype=torch.bool, device=device) -> torch.ones": "equal sizes",
    "self.dropout": "no lesson drops weights",
    "mask, **dropped) -> ": "no lesson drops weights",
    "rows.to(embedded) -> rows": "torch casts the table in the sum",
    "masked_fill_(total": "the tensor is new",
    "-1 -> 1": "the last axis of two is axis 1",
    "-2 -> 2": "the last axis but one of four is axis 2",
    ".size(-2) -> _cached(": "the sizes of equal shapes are equal",
    ".size(-1) -> _cached(": "the sizes of equal shapes are equal",
    "math.sqrt(query.size(-1)) -> _cached(": "the sizes of equal shapes are equal",
    "-math.inf) -> _cached(": "the first maximum is only read",
    "max(len(others)": "the two numbers are in either order",
    "torch.promote_types(": "the two types are in either order",
    "min(update **": "the two numbers are in either order",
    "1e-09 -> -1e-09": "the difference of the steps is below all tolerances",
    "torch.set_grad_enabled(False) tokens": "greedy has no gradients, and restores the switch",
    "torch.set_grad_enabled(True) tokens": "greedy has no gradients, and restores the switch",
    "greedy: a constant changed: 0 -> -1": "the last column of one is the first",
    "best_continuations: a constant changed: True -> False": "the lists have equal lengths",
    "following.tolist() -> following": "a tensor of numbers serves as the numbers do",
    "observe": "no lesson has an observer",
    "rules -> length_penalty": "no lesson has an observer",
    "beam_search: an argument dropped: rules.log_probabilities(": "no lesson has an observer",
    "arguments exchanged: rules.log_probabilities(": "no lesson has an observer",
    "rules.ids([target.row": "a list picks rows as a tensor does",
    "if len(finished) >= n_best": "the search goes on, but finds nothing better",
    "beam_search: a constant changed: 1 -> 2": "one end at most leads",
    "beam_search: a constant changed: 2 -> 4": "more candidates than needed change nothing",
}
"""Parts of the names of right mutants, each with the reason."""


def verdict_on(mutant):
    """The outcome and the lines of a check of a mutant; "idle" if the mutant changes no value."""
    solution = mutant.solution()
    torch.seed()
    for hole in mutant.lesson.holes:
        judge = Judge.of(mutant.lesson, hole)
        try:
            results, steady = results_of(judge.probes, solution)
        except TimeoutError:
            return "error", ("runs for ever",)
        if not steady:
            return "unsteady", (UNSTEADY,)
        verdict = judge.verdict(results)
        if verdict is None:
            return "error", ()
        if verdict.outcome != "right":
            return verdict.outcome, verdict.lines
    return "right" if mutant.acts(solution) else "idle", ()


def results_of(probes, solution):
    """The results of probes without errors, and whether a second call gives equal values."""
    results, steady = {}, True
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        for place, probe in enumerate(probes):
            try:
                results[probe.__name__] = values_of(probe, solution)
                if place < TWICE:
                    again = values_of(probe, solution)
                    steady &= same({probe.__name__: again}, results)
            except TimeoutError:
                raise
            except Exception:
                continue  # the judge has no values of this probe
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        torch.set_grad_enabled(True)
    return results, steady


def stop(*_):
    raise TimeoutError


def only_a_number(outcome, lines):
    """Whether a message has two numbers, and no sentence about the difference."""
    unnamed = outcome in ("difference", "law") and lines[0].startswith("Your ")
    number = unnamed and "; right is " in lines[0] and "shape" not in lines[0]
    words = ("only then", "in common")
    return number and not any(word in line for word in words for line in lines)


def is_found(mutant):
    """Whether a probe gives other values or gradients than with the right solution, or an error."""
    wrong, right = mutant.solution(), solution(mutant.lesson)
    torch.seed()
    try:
        for probe in (x for probes in probes_of(mutant.lesson.name).values() for x in probes):
            results, _ = results_of([probe], wrong)
            expected = values_of(probe, right)
            values = results.get(probe.__name__, {})
            if values.keys() != expected.keys():
                return True
            if not all(equal(values[name], each) for name, each in expected.items()):
                return True
    except TimeoutError:
        return True
    return not mutant.acts(wrong)


@pytest.mark.parametrize("name", EVERY)
def test_a_mutant_is_found_or_listed(name):
    for mutant in mutants(lesson(name), SOME):
        assert is_found(mutant) or any(part in mutant.name for part in RIGHT), mutant.name


@pytest.mark.parametrize("name", EVERY)
def test_all_mutants_are_found_or_listed_and_said_in_words(name, request):
    if request.config.getoption("--hypothesis-profile") != "nightly":
        pytest.skip("nightly: thirty mutants of each lesson and exercise")
    outcomes, missed, numbers = Counter(), [], []
    for mutant in mutants(lesson(name), ALL):
        outcome, lines = verdict_on(mutant)
        outcomes[outcome] += 1
        if outcome == "right" and not any(part in mutant.name for part in RIGHT):
            missed.append(mutant.name)
        if only_a_number(outcome, lines):
            numbers.append(mutant.name)
    assert not missed
    found = outcomes.total() - outcomes["right"] - outcomes["idle"]
    assert 6 * len(numbers) <= found, numbers
