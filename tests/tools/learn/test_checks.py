"""The checks under test: right solutions pass, every known mistake is named, and only it."""

from io import StringIO
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from glassformer.tools.learn.check import measure, probes_of
from glassformer.tools.learn.edits import solution
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import LESSONS, lesson, lessons
from glassformer.tools.learn.messages import print_verdict
from glassformer.tools.learn.observed import observations, same

SOME = 25  # pairs of each hole; --all-pairs takes all, which is minutes
ROWS = 16  # of a verdict; 8 of prints or hint follow in a terminal of 24
HOLES = [(each.name, hole) for each in lessons() for hole in each.holes]


@pytest.mark.parametrize("name", LESSONS)
def test_the_package_passes(name):
    for hole in lesson(name).holes:
        judge = Judge.of(lesson(name), hole)
        verdict = judge.verdict(measure(judge.probes, solution(lesson(name))))
        assert verdict.outcome == "right", hole
        assert len(judge.right) == len(judge.probes)


@pytest.mark.parametrize("name", LESSONS)
def test_every_mistake_is_named_and_only_it(name):
    """Each edit fits once, changes a probe, and differs from all others but those it equals."""
    judges = [Judge.of(lesson(name), hole) for hole in lesson(name).holes]
    mistakes = lesson(name).mistakes
    for mistake, record in mistakes.items():
        verdicts = [judge.verdict(judge.results((mistake,))) for judge in judges]
        wrong = [verdict for verdict in verdicts if verdict and verdict.outcome != "right"]
        assert wrong, f"no probe shows {mistake}"
        first = record.equals or mistake
        equal = {first} | {each for each in mistakes if mistakes[each].equals == first}
        for verdict in wrong:
            named = {each[0] for each in verdict.mistakes if len(each) == 1}
            assert mistake in named
            assert named <= equal, mistake
            assert record.says in verdict.lines[0] or len(named) > 1
            print_verdict(Console(file=(screen := StringIO()), width=80), lesson(name), verdict)
            assert screen.getvalue().count("\n") <= ROWS, mistake


@pytest.mark.parametrize(("name", "hole"), HOLES)
def test_every_pair_is_named_or_told(name, hole, request, monkeypatch):
    judge = Judge.of(lesson(name), hole)
    pairs = list(judge.pairs())
    if not request.config.getoption("all_pairs"):
        pairs = Random(hole).sample(pairs, min(SOME, len(pairs)))
        # A pair is told from the single mistakes, and the others of the sample.
        monkeypatch.setattr(Judge, "pairs", lambda _: iter(pairs))
    for pair in pairs:
        results = judge.results(pair)
        if len(results) < len(judge.right) or same(results, judge.right):
            continue  # it raises an error, or shows in another hole
        verdict = judge.verdict(results)
        assert verdict.outcome != "right"
        if verdict.outcome == "mistake" and len(verdict.mistakes[0]) == 2:
            assert pair in verdict.mistakes
        # A single mistake may hide the other: with no softmax, its axis does not matter.
        elif verdict.outcome == "mistake":
            assert verdict.mistakes[0][0] in pair


def test_an_example_says_the_rule_that_it_shows():
    judge = Judge.of(lesson("schedule"), "adam_step")
    right = solution(lesson("schedule")).adam_step

    def twice(weight, gradient, **options):
        return right(weight, gradient, **options | {"rate": 2 * options.get("rate", 0)})

    lines = judge.verdict(measure(judge.probes, SimpleNamespace(adam_step=twice))).lines
    assert lines[0] == "The first step of Adam is one rate, whatever the size of the gradient."


@pytest.mark.parametrize("name", LESSONS)
def test_the_texts_belong_to_the_code(name):
    """Each hole has its probes, and each probe has a name and a text of its own."""
    check = probes_of(name)
    assert list(check) == list(lesson(name).holes)
    every = [probe for probes in check.values() for probe in probes]
    names = [probe.__name__ for probe in every]
    assert len(names) == len(set(names))
    assert all(probe.__doc__ for probe in every)


def test_the_name_of_a_mistake_is_its_own():
    names = [name for each in lessons() for name in each.mistakes]
    assert len(names) == len(set(names))


def test_two_numbers_have_no_line_through_them():
    values, right = np.array([0.8808, 0.1192]), np.array([0.8044, 0.1956])
    said = [*observations({"weights": values}, {"weights": right})]
    assert not any("times" in line for line in said)
    [twice] = observations({"weights": 2 * right}, {"weights": right})
    assert twice == "Each number of your weights is the right one times 2."
