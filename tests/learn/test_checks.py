"""The checks under test: right solutions pass, every known mistake is named, and only it."""

from random import Random
from types import SimpleNamespace

import pytest
from torch import nn

from glassformer import ScaledEmbedding, Transformer
from glassformer.learn.check import check_of, measure
from glassformer.learn.judge import Judge, same
from glassformer.learn.lesson import LESSONS, lesson, lessons, part_of

# Faults that are the same function, so that no check can tell them apart.
EQUAL: set[frozenset[str]] = set()

SOME = 25  # pairs of each hole; --all-pairs takes all, which is minutes
HOLES = [(each.name, hole) for each in lessons() for hole in each.holes]


class TwoEnds(nn.Module):
    """The Transformer without its stacks, as the lesson on embeddings has it."""

    output = output_bias = None
    output_weight = Transformer.output_weight
    project = Transformer.project

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.target_embedding = ScaledEmbedding(vocab_size, d_model)


TWO_ENDS = {("embeddings", "model.transformer.Transformer"): TwoEnds}


def solution_of_the_package(name):
    """The package's own parts, as a learner would have them in his file."""
    solution = SimpleNamespace()
    for hole, place in lesson(name).holes.items():
        owner, _, method = hole.partition(".")
        path = place.removesuffix(f".{method}") if method else place
        setattr(solution, owner, TWO_ENDS.get((name, path)) or part_of(path))
    return solution


@pytest.mark.parametrize(("name", "hole"), HOLES)
def test_the_package_passes(name, hole):
    judge = Judge.of(lesson(name), hole)
    verdict = judge.verdict(measure(judge.probes, solution_of_the_package(name)))
    assert verdict.outcome == "right"
    assert len(judge.right) == len(judge.probes)


@pytest.mark.parametrize("name", LESSONS)
def test_every_fault_is_named_and_only_it(name):
    judges = [Judge.of(lesson(name), hole) for hole in lesson(name).holes]
    for fault, record in lesson(name).faults.items():
        verdicts = [judge.verdict(judge.results((fault,))) for judge in judges]
        wrong = [verdict for verdict in verdicts if verdict and verdict.outcome != "right"]
        assert wrong, f"no probe shows {fault}"
        for verdict in wrong:
            named = {mistake[0] for mistake in verdict.mistakes if len(mistake) == 1}
            assert named == {fault} or frozenset(named) in EQUAL, fault
            assert fault in named
            assert record.mistake in verdict.lines[0] or len(named) > 1


@pytest.mark.parametrize(("name", "hole"), HOLES)
def test_every_pair_is_named_or_breaks_a_law(name, hole, request, monkeypatch):
    judge = Judge.of(lesson(name), hole)
    pairs = list(judge.pairs())
    if not request.config.getoption("all_pairs"):
        pairs = Random(hole).sample(pairs, min(SOME, len(pairs)))
        # A pair is told from the single mistakes, the laws, and the others of the sample.
        monkeypatch.setattr(Judge, "pairs", lambda _: iter(pairs))
    for pair in pairs:
        results = judge.results(pair)
        if len(results) < len(judge.right) or same(results, judge.right):
            continue  # it raises an error, or shows in another hole
        verdict = judge.verdict(results)
        assert verdict.outcome in ("mistake", "law")
        if verdict.outcome == "mistake" and len(verdict.mistakes[0]) == 2:
            assert pair in verdict.mistakes
        # A single fault may hide the other: with no softmax, its axis does not matter.
        elif verdict.outcome == "mistake":
            assert verdict.mistakes[0][0] in pair


def test_a_mistake_is_shown_by_the_law_that_it_breaks():
    judge = Judge.of(lesson("padding"), "masked_softmax")
    record = lesson("padding").faults["softmax-without-mask"]
    verdict = judge.verdict(judge.results(("softmax-without-mask",)))
    evidence = "With scores 1, 2, 3 the hidden third key gets 0.665."
    assert verdict.lines[0] == f"{record.mistake} {evidence}"


def test_large_logits_break_a_law_if_the_loss_is_no_number():
    judge = Judge.of(lesson("loss"), "label_smoothed_cross_entropy")
    verdict = judge.verdict(judge.results(("log-of-softmax",)))
    assert "The logits 1000, 0, 0, 0 with label 1 lose infinity or NaN" in verdict.lines[0]


@pytest.mark.parametrize("name", LESSONS)
def test_the_texts_belong_to_the_code(name):
    """Each hole has its probes, and each probe has a name and a text of its own."""
    check = check_of(name)
    assert list(check.probes) == list(lesson(name).holes)
    names = [probe.__name__ for probe in check.all_probes]
    assert len(names) == len(set(names))
    assert all(probe.__doc__ for probe in check.all_probes)


def test_the_name_of_a_mistake_is_its_own():
    names = [name for each in lessons() for name in each.faults]
    assert len(names) == len(set(names))
