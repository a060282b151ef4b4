"""The searches of batches find what the plain ones find."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.config import MOST_LENGTH_PENALTY
from glassformer.decoding import beam, greedy
from glassformer.decoding.constraints import ForcedPrefix, OutputRules
from glassformer.decoding.fast import beam as fast_beam
from glassformer.decoding.fast import greedy as fast_greedy
from glassformer.decoding.fast.top_k import likeliest
from glassformer.decoding.logits_processors import MinLength, NoRepeatNgram, RepetitionPenalty
from glassformer.decoding.vocabulary import Vocabulary

VOCAB = 9
TOKENS = st.integers(4, VOCAB - 1)


class OddOnly:
    """A constraint that counts: no token twice in a row, and in odd sentences no 4."""

    def __init__(self, sentences):
        self.odd = torch.tensor([sentence % 2 for sentence in sentences]) == 1

    def __call__(self, log_probabilities, tokens, sentences):
        if tokens.size(1):
            log_probabilities = log_probabilities.scatter(1, tokens[:, -1:], -torch.inf)
        log_probabilities[self.odd[sentences], 4] = -torch.inf
        return log_probabilities

    def select(self, sentences):
        return OddOnly(sentences)

    def needed(self, _sentence):
        return 0


@st.composite
def given_rules(draw, sentences):
    """The rules of so many sentences."""
    vocabulary = Vocabulary(
        prefix_ids=tuple(draw(st.lists(TOKENS, max_size=2))),
        blank_ids=draw(st.sampled_from([frozenset(), frozenset({4, 6})])),
    )
    forced = draw(st.lists(st.lists(TOKENS, max_size=3), min_size=sentences, max_size=sentences))
    constraints = [ForcedPrefix(forced, vocabulary), OddOnly(range(sentences))]
    processors = [RepetitionPenalty(1.7), NoRepeatNgram(2), MinLength(3, vocabulary)]
    return OutputRules(
        torch.tensor(
            [draw(st.integers(1, 12) | st.just(12)) for _ in range(sentences)], dtype=torch.int64
        ),
        vocabulary,
        draw(st.just([]) | st.lists(st.sampled_from(constraints), max_size=2)),
        draw(st.just([]) | st.lists(st.sampled_from(processors), max_size=2)),
        draw(st.sampled_from([OutputRules.best_tokens, likeliest])),
    )


@st.composite
def languages(draw, toy):
    """A language of up to five sentences; some tokens may be impossible."""
    sentences = draw(st.integers(0, 5))
    end = draw(st.sampled_from([-math.inf, -4.0, 0.0, 3.0]))
    language = toy(batch=sentences, vocab=VOCAB, seed=draw(st.integers(0, 10**6)), end=end)
    share = draw(st.sampled_from([0.0, 0.0, 0.3, 0.8]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    impossible = torch.rand(language.logits.shape, generator=generator) < share
    language.logits[impossible] = -math.inf
    return language


def assert_same(plain, fast):
    """The same targets in the same order, with the same figures but for rounding."""
    for one, other in zip(plain, fast, strict=True):
        assert [(h.tokens, h.finished) for h in one] == [(h.tokens, h.finished) for h in other]
        for figure in ("score", "log_probability"):
            values = [getattr(h, figure) for h in other]
            assert [getattr(h, figure) for h in one] == pytest.approx(values, rel=1e-9)


@given(data=st.data())
def test_greedy(toy, data):
    language = data.draw(languages(toy))
    rules = data.draw(given_rules(len(language.logits)))
    plain, fast = (
        search(language.step, language.state(), rules)
        for search in (greedy.greedy, fast_greedy.greedy)
    )
    assert_same(plain, fast)


@given(data=st.data(), width=st.sampled_from([1, 2, 3, 5, 9]))
def test_beam_search(toy, data, width):
    language = data.draw(languages(toy))
    rules = data.draw(given_rules(len(language.logits)))
    for alpha, n_best in product(
        (0.0, 0.6, 2.0, MOST_LENGTH_PENALTY), {1, (width + 1) // 2, width}
    ):
        options = {"beam": width, "length_penalty": alpha, "n_best": n_best}
        plain, fast = (
            search(language.step, language.state(), rules, **options)
            for search in (beam.beam_search, fast_beam.beam_search)
        )
        assert_same(plain, fast)


@given(seed=st.integers(0, 10**6), width=st.sampled_from([1, 2, 3, 5]))
def test_of_equal_tokens_either_may_come_but_the_scores_are_the_same(seed, width):
    """Each token has a twin, and no token acts on those after it; the end has no twin."""
    table = torch.randn(20, 7, generator=torch.Generator().manual_seed(seed)).double()
    table = torch.cat([table, table[:, 4:]], dim=1)

    class Place(int):
        def select(self, _rows):
            return self

    def step(tokens, place):
        return table[place].expand(len(tokens), -1), Place(place + 1)

    plain, fast = (
        search(step, Place(), OutputRules(torch.tensor([19, 3])), beam=width, n_best=width)
        for search in (beam.beam_search, fast_beam.beam_search)
    )
    for one, other in zip(plain, fast, strict=True):
        assert [len(h.tokens) for h in one] == [len(h.tokens) for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other])


def test_finished_sentences_leave_the_batch(toy):
    language = toy(batch=4, vocab=7, seed=8, end=-math.inf)
    rules = OutputRules(torch.tensor([2, 5, 2, 3]))
    for search, rows in (
        (greedy.greedy, [4] * 5),
        (fast_greedy.greedy, [4, 4, 2, 1, 1]),
        (fast_beam.beam_search, [4, 20, 10, 5, 5]),
    ):
        state = language.state()
        search(language.step, state, rules)
        assert state.seen == rows
