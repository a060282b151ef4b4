"""Each sentence on a learner's values is true of them, and names what the generator has done."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.model.attention import scaled_dot_product_attention as right_attention
from glassformer.tools.learn.check import measure
from glassformer.tools.learn.edits import solution
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.observed import compared, observations
from glassformer.tools.learn.where import supposed

TRANSFORMED = {
    r"Each number of your x is the right one times 2\.5\.": lambda x: 2.5 * x,
    r"Each number of your x is the right one plus 3\.": lambda x: x + 3,
    r"Each number of your x is the right one times -0\.5 plus 1\.": lambda x: 1 - x / 2,
    r"Each number of your x is the right one, some with the other sign\.": lambda x: (
        x * np.resize((1, -1, -1), x.shape)
    ),
    r"All numbers of your x are 0\.": lambda x: 0 * x,
    r"NaN or infinity stands at \d+ places of your x, first at": lambda x: np.where(
        x > np.median(x), np.inf, x
    ),
    r"The numbers of your x have about 6 right digits\.": lambda x: x + 8e-7 * abs(x).max(),
    r"The numbers of your x are right, but in reverse order along axis 1\.": lambda x: x[:, ::-1],
    r"The numbers of your x are right, but in reverse order along axis 0\.": lambda x: x[::-1],
    r"The numbers of your x are right, but in other places\.": lambda x: np.roll(x, 1, 1),
    r"Each row of your x is the right one times, or plus, a number of its own\.": lambda x: (
        x * np.arange(2, 2 + len(x))[:, None, None]
    ),
    r"In your x, only index 1 of axis 0 \(batch\), which has 2, is wrong\.": lambda x: (
        x + np.eye(2)[1][:, None, None] * np.sin(9 * x)
    ),
    r"In your x, only index 2 of axis 1 \(length\), which has 5, is right\.": lambda x: (
        x + (1 - np.eye(5)[2])[:, None] * np.sin(9 * x)
    ),
    r"An axis of size 1 is too many, or is missing, in your x\.": lambda x: x[:, None],
    r"The axes of your x stand in another order\.": lambda x: x.swapaxes(0, 1),
}
"""The sentence on each change of a right value (2, 5, 3)."""


@pytest.mark.parametrize("sentence", TRANSFORMED)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_a_changed_value_is_named_by_its_change_and_by_no_other(sentence, seed):
    right = np.random.default_rng(seed).standard_normal((2, 5, 3))
    value = TRANSFORMED[sentence](right)
    sizes = {"batch": 2, "length": 5}
    [seen] = observations({"x": value}, {"x": right}, sizes)
    assert [each for each in TRANSFORMED if re.match(each, seen)] == [sentence]


TURNED = "Your x is the other way round: each True should be False."
ZERO = "A number of your x should be 0: 0.2 at [0, 0]."
SUMS = "The right x have rows with sums of 1; a row of yours has 0.8."
SQUARES = "The right x have rows with sums of squares of 1; a row of yours has 0.72."


@pytest.mark.parametrize(
    ("yours", "right", "sentence"),
    [
        ("a b, c d", "a b, d d", "The first part is right in your x."),
        ("a, b, c, e", "a, b, d, f", "The first 2 of 4 are right in your x."),
        ("a, b", "b, a", "You have the right parts in another order."),
        ("a", "a, b", "The number of parts of your x is 1; right is 2. The shared begin is right."),
        ("[[[6], [4]], [[5]]]", "[[[6], [3]], [[5]]]", "Your x[0][1]: [4]; right is [3]."),
        ([[0.2, 0.8], [0.1, 0.9]], [[0.0, 1], [0.4, 0.6]], ZERO),
        ([[0.2, 0.7], [0.4, 0.4]], [[0.1, 0.9], [0.5, 0.5]], SUMS),
        ([[0.6, 0.6], [1.0, 0.0]], [[0.8, 0.6], [1.0, 0.0]], SQUARES),
        (np.array([-0.0]), np.array([0.5]), "Your x: [0]; right is [0.5]."),
        ([[[True]]], [[[False]]], "Your x shows 1 place too many, [0, 0, 0]."),
        (
            [True, False, True],
            [False, True, False],
            TURNED,
        ),
    ],
)
def test_a_sentence_on_texts_and_masks(yours, right, sentence):
    yours, right = np.asarray(yours), np.asarray(right)
    seen = [*observations({"x": yours}, {"x": right}), compared("x", yours, right)]
    assert sentence in seen


def attention(change):
    """The right solution of lesson 1 for a changed key, value or mask."""

    def scaled_dot_product_attention(query, key, value, mask=None):
        return right_attention(query, *change(query, key, value, mask))

    return SimpleNamespace(scaled_dot_product_attention=scaled_dot_product_attention)


def of_first(_, key, value, mask):
    """The mask of the first sentence for all."""
    return key, value, mask[:1].expand_as(mask) if mask is not None and mask.dim() == 4 else mask


def causal(query, key, value, mask):
    """A mask of later keys where none is given."""
    q_len, k_len = query.size(-2), key.size(-2)
    later = torch.ones(q_len, k_len, dtype=torch.bool).tril(max(k_len - q_len, 0))
    return key, value, later if mask is None else mask


ALL = "your weights and output would be right."
TAKEN = {
    f"With the mask the other way round, {ALL}": lambda _, key, value, mask: (
        (key, value, None if mask is None else ~mask)
    ),
    f"With the mask of the first sentence for all, {ALL}": of_first,
    "With the value in reverse order, your output would be right.": lambda _, key, value, mask: (
        (key, value.flip(-2), mask)
    ),
    "With a mask (q_len, k_len) that hides later keys in place of no mask or None as the mask,"
    f" {ALL}": causal,
}


@pytest.mark.parametrize("sentence", TAKEN)
def test_other_inputs_with_which_an_answer_would_be_right_are_named(sentence):
    judge = Judge.of(lesson("attention"), "scaled_dot_product_attention")
    probes = [each for each in judge.probes if hasattr(each, "situation")]
    results = measure(probes, attention(TAKEN[sentence]))
    assert [*supposed(probes, judge.right, results, solution(judge.lesson))] == [sentence]


def test_a_guess_from_digits_fits_all_values_or_is_not_made():
    judge = Judge.of(lesson("attention"), "scaled_dot_product_attention")
    results = {
        probe: {
            name: value * (1 + 1e-7) if value.dtype == np.float64 else value
            for name, value in values.items()
        }
        for probe, values in judge.right.items()
    }
    guess = "float32 has 7 digits: look for .float()."
    assert guess in judge.verdict(results).lines
    last = [probe for probe in results if results[probe]["output"].dtype == np.float64][-1]
    results[last] |= {"output": results[last]["output"] + 3}
    assert guess not in judge.verdict(results).lines


def test_the_law_of_the_mean_is_broken_only_if_the_mean_changes_the_norm():
    def clamped(x, weight, bias, epsilon):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True).clamp(min=epsilon)
        return centred / variance.sqrt() * weight + bias

    judge = Judge.of(lesson("blocks"), "layer_norm")
    wrong = SimpleNamespace(layer_norm=clamped)
    verdict = judge.verdict(measure(judge.probes, wrong))
    assert verdict.outcome == "difference"
