"""The inputs that a check hands out, and the situations of its probes."""

from collections import Counter
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.tools.learn import inputs
from glassformer.tools.learn.check import measure, probe, probes_of, values_of
from glassformer.tools.learn.holes import Hole, ids
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import EVERY, lesson
from glassformer.tools.learn.observed import same
from glassformer.tools.learn.situations import (
    ELSEWHERE,
    IDS,
    PADDING,
    covering,
    situations,
)


def rows_of(name, function):
    """The usual situation of a hole with random numbers (2, 3)."""
    return situations(name, lambda solution, s: {name: function(solution(s.numbers("x", 2, 3)))})[
        :1
    ]


def test_a_changed_input_is_a_value_of_each_probe():
    [doubled] = rows_of("doubled", lambda x: x)
    assert not values_of(doubled, lambda x: 2 * x)["changed"]
    assert values_of(doubled, lambda x: x.mul_(2))["changed"] == "x"
    made = probe("a table", lambda solution: {"made": solution(inputs.given([[1, 2], [3, 4]]))})
    assert values_of(made, lambda x: x.mul_(2))["changed"] == "an input"


def test_an_input_is_the_same_in_each_call_though_it_was_changed():
    [doubled] = rows_of("doubled", lambda x: x)
    first, second = (values_of(doubled, lambda x: x.mul_(2)) for _ in range(2))
    assert np.array_equal(first["doubled"], second["doubled"])


def test_a_mistake_is_measured_without_gradients():
    [root] = rows_of("root", torch.sin)
    assert "gradient with respect to x" in values_of(root, torch.sin)
    [values] = measure((root,), torch.sin, gradients=False).values()
    assert [*values][:1] + [*values][-1:] == ["changed", "root"]
    assert not any(name.startswith("gradient") for name in values)


@given(st.lists(st.integers(1, 5), min_size=2, max_size=6))
def test_each_two_values_of_two_axes_meet_in_a_row(sizes):
    rows = covering(tuple((str(axis), range(size)) for axis, size in enumerate(sizes)))
    assert all(row == {str(axis): 0 for axis in range(len(sizes))} for row in rows[:1])
    for one, other in combinations(range(len(sizes)), 2):
        pairs = {(row[str(one)], row[str(other)]) for row in rows}
        assert pairs == {*product(range(sizes[one]), range(sizes[other]))}


@pytest.mark.parametrize("name", EVERY)
def test_a_hole_has_at_most_forty_situations_of_a_kind(name):
    for probes in probes_of(name).values():
        kinds = [each.__name__.split(": ")[:2] for each in probes if hasattr(each, "situation")]
        kinds = [" ".join(kind) for kind in kinds]
        assert all(count <= 40 for count in Counter(kinds).values())


@given(scale=st.floats(0.01, 100), noise=st.floats(-0.004, 0.004))
def test_bfloat16_is_compared_up_to_its_own_error(scale, noise):
    """A rounded answer is right; one of another type, or that is off by a fifth, is not."""
    rows = situations(
        "x", lambda solution, s: {"sum": solution(s.numbers("x", 5, 7))}, type=("bfloat16",)
    )
    right = measure(rows, lambda x: (x * scale).softmax(-1))
    close = measure(rows, lambda x: ((x.float() * scale).softmax(-1) * (1 + noise)).bfloat16())
    assert same(close, right)
    assert not same(measure(rows, lambda x: (x * scale).softmax(-1) * 1.2), right)
    assert not same(measure(rows, lambda x: (x.float() * scale).softmax(-1)), right)


def test_values_of_another_type_are_told():
    def attend(query, key, value, _mask=None):
        weights = (query @ key.mT).softmax(-1)
        return weights @ value > 0, weights  # numbers expected

    judge = Judge.of(lesson("attention"), "scaled_dot_product_attention")
    own = SimpleNamespace(scaled_dot_product_attention=attend)
    verdict = judge.verdict(measure(judge.probes, own))
    assert verdict.outcome == "difference"
    assert any(line.startswith("Your weights: ") for line in verdict.lines)


MASKED = Hole("mask", "mask", tokens=ids("length", 9, 0)).situations(
    **IDS, device=ELSEWHERE, length=(5, 1, 3), padding=PADDING
)
KEPT = {}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda tokens: KEPT.setdefault((tokens.shape, tokens.device), tokens != 0),
        lambda tokens: tokens != 0 if tokens.is_cpu else torch.zeros(tokens.shape) != 0,
        lambda tokens: (tokens != 0) & torch.ones(tokens.shape[1], dtype=torch.bool),
        lambda tokens: (tokens != 0) | (tokens == 0).all(),
    ],
    ids=["an answer of before", "an answer on another device", "two devices", "no padding alone"],
)
def test_a_wrong_answer_shows_in_some_situation(wrong):
    right = measure(MASKED, SimpleNamespace(mask=lambda tokens: tokens != 0))
    assert len(right) == len(MASKED)
    assert not same(right, measure(MASKED, SimpleNamespace(mask=wrong)))


def test_an_object_that_keeps_an_answer_of_other_weights_is_seen():
    """The same tensors come again, after the weights have changed."""
    hole = Hole("Layer.forward", "output", lambda file, s: s.module(file.Layer), x="batch 3")
    probes = hole.situations()

    class Layer(torch.nn.Linear):
        def __init__(self):
            super().__init__(3, 3)

    class Keeping(Layer):
        last = None

        def forward(self, x):
            if self.last is None or self.last[0] is not x:
                self.last = x, super().forward(x)
            return self.last[1]

    right, kept = (measure(probes, SimpleNamespace(Layer=each)) for each in (Layer, Keeping))
    wrong = [name for name in right if not same({name: right[name]}, kept)]
    assert len(wrong) == 1
    assert "the weights change between" in wrong[0]
