"""Sampling against distributions computed apart with numpy, and against frequencies."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.greedy import greedy
from glassformer.decoding.protocols import IMPOSSIBLE
from glassformer.decoding.sampling import Sampling, sample, shape_distribution
from tests.tables import every

BOS, EOS = 2, 3


def shaped_by_hand(row, temperature, top_k, top_p):
    """One row, token by token, straight from the definitions."""
    weights = np.exp(np.asarray(row) / temperature)
    order = sorted(range(len(row)), key=lambda i: -weights[i])
    order = order[: top_k or None]
    total = sum(weights[i] for i in order)
    kept, mass = [], 0.0
    for i in order:
        if mass >= top_p:
            break
        kept.append(i)
        mass += weights[i] / total
    answer = np.zeros(len(row))
    for i in kept:
        answer[i] = weights[i] / sum(weights[j] for j in kept)
    return answer


@given(
    seed=st.integers(0, 10**6),
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
    top_k=st.sampled_from([0, 1, 3, 50]),
    top_p=st.sampled_from([0.001, 0.3, 0.87, 1.0]),
)
def test_the_distribution_is_the_one_worked_out_by_hand(seed, temperature, top_k, top_p):
    rows = torch.randn(5, 13, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    rows = (2 * rows).log_softmax(-1)
    shaped = shape_distribution(rows, Sampling(temperature, top_k, top_p))
    expected = [shaped_by_hand(row, temperature, top_k, top_p) for row in rows.tolist()]
    np.testing.assert_allclose(shaped.numpy(), expected, atol=1e-12)


def test_the_coldest_temperature_takes_the_likeliest():
    row = torch.tensor([[-1.0, -0.5, -math.inf]])
    assert shape_distribution(row, Sampling(1e-300)).tolist() == [[0.0, 1.0, 0.0]]


def test_what_is_impossible_stays_impossible():
    row = torch.tensor([[-math.inf, 0.0, -1.0, -math.inf]])
    shaped = shape_distribution(row, Sampling(5.0, top_k=3, top_p=0.999))
    assert shaped[0, 0] == shaped[0, 3] == 0
    assert shaped.sum() == pytest.approx(1)


def test_targets_come_as_often_as_the_model_says(toy):
    """Every target of at most two tokens: chi-squared over all of them, with a fixed seed."""
    language = toy(batch=1, vocab=6, seed=3)
    language.logits[:, 0, BOS, EOS] = -math.inf
    language.logits[..., :3] = -math.inf  # else the rest is renormalised, and the figures are off
    draws = 20_000
    (found,) = sample(
        language.step,
        language.state(),
        OutputRules(torch.tensor([3])),
        n_best=draws,
        generator=torch.Generator().manual_seed(5),
    )
    counts = Counter((h.tokens, h.finished) for h in found)
    expected = {
        (target, finished): math.exp(
            language.log_probability(0, (*target, EOS) if finished else target)
        )
        for length in range(1, 4)
        for target in itertools.product((4, 5), repeat=length)
        for finished in ([True] if length < 3 else [False])
    }
    assert sum(expected.values()) == pytest.approx(1)
    assert set(counts) <= set(expected)
    statistic = sum(
        (counts[key] - draws * p) ** 2 / (draws * p) for key, p in expected.items() if p * draws > 5
    )
    assert statistic < 36  # 15 kinds: 14 degrees of freedom, p = 0.001


def test_a_seed_gives_the_same_targets_again_and_another_seed_others(toy):
    language = toy(batch=5, vocab=13, seed=1)
    rules = OutputRules(torch.full((5,), 9))
    one, again, other = (
        sample(language.step, language.state(), rules, n_best=3, sampling=Sampling(seed=seed))
        for seed in (1, 1, 2)
    )
    assert one == again != other


def test_a_top_k_of_one_is_greedy_and_the_figures_are_the_models(toy):
    language = toy(batch=5, vocab=13, seed=1, end=1.0)
    maxima = torch.tensor([2, 3, 5, 7, 11])
    plain = greedy(language.step, language.state(), OutputRules(maxima))
    for coldest in (Sampling(top_k=1), Sampling(top_p=1e-9), Sampling(temperature=1e-4)):
        found = sample(language.step, language.state(), OutputRules(maxima), sampling=coldest)
        assert found == plain


def test_several_draws_belong_to_their_sentence_and_come_best_first(toy):
    language = toy(batch=3, vocab=13, seed=1, end=1.0)
    found = sample(
        language.step,
        language.state(),
        OutputRules(torch.tensor([7, 5, 11])),
        n_best=4,
        sampling=Sampling(temperature=1.3, seed=0),
    )
    for sentence, hypotheses in enumerate(found):
        assert len(hypotheses) == 4
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for h in hypotheses:
            target = (*h.tokens, EOS) if h.finished else h.tokens
            expected = language.log_probability(sentence, target)
            assert h.score == h.log_probability == pytest.approx(expected)


def test_a_dead_end_gives_the_impossible_hypothesis(toy):
    language = toy(batch=2, vocab=7, seed=4)
    language.logits[1, :, 2] = -math.inf
    found = sample(language.step, language.state(), OutputRules(torch.tensor([5, 5])))
    assert found[1] == [IMPOSSIBLE]
    assert found[0] != [IMPOSSIBLE]


@every(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be a finite number above 0, not 0.0"),
        ({"temperature": math.nan}, "temperature must be a finite number above 0, not nan"),
        ({"temperature": math.inf}, "temperature must be a finite number above 0, not inf"),
        ({"top_k": -1}, r"top_k must be at least 0 \(0: all tokens\), not -1"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, not 0.0"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, not 1.5"),
    ],
)
def test_a_wrong_parameter_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**options)


def test_no_target_at_all_is_refused(toy):
    language = toy(batch=1, vocab=7)
    with pytest.raises(ValueError, match="n_best must be at least 1, not 0"):
        sample(language.step, language.state(), OutputRules(torch.tensor([3])), n_best=0)
