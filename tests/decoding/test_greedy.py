"""Greedy search on the toy language."""

import math

import pytest
import torch

from glassformer.decoding.constraints import OutputRules, log_softmax
from glassformer.decoding.greedy import greedy
from glassformer.decoding.vocabulary import Vocabulary

EOS = 3


def walk(language, sentence, longest):
    """The most probable token, one at a time, with nothing batched."""
    target = ()
    while len(target) < longest:
        choices = [*[EOS][: len(target)], *range(4, language.vocab)]
        best = max(choices, key=lambda t: language.log_probability(sentence, (*target, t)))
        if best == EOS:
            return target, True
        target = (*target, best)
    return target, False


def test_it_takes_the_most_probable_token_at_every_step(toy):
    language = toy(batch=7, vocab=11, seed=2, end=1.5)
    maxima = [1, 2, 3, 5, 7, 11, 13]
    found = greedy(language.step, language.state(), OutputRules(torch.tensor(maxima)))
    assert {h.finished for (h,) in found} == {True, False}
    for sentence, (h,) in enumerate(found):
        assert (h.tokens, h.finished) == walk(language, sentence, maxima[sentence])
        target = (*h.tokens, EOS) if h.finished else h.tokens
        expected = language.log_probability(sentence, target)
        assert h.score == h.log_probability == pytest.approx(expected)


def test_the_order_of_the_batch_changes_nothing(toy):
    language = toy(batch=7, vocab=11, seed=2, end=1.0)
    maxima = torch.tensor([1, 2, 3, 5, 7, 11, 13])
    order = [4, 0, 6, 2, 5, 1, 3]
    found = greedy(language.step, language.state(), OutputRules(maxima))
    other = greedy(language.step, language.state(order), OutputRules(maxima[order]))
    assert other == [found[i] for i in order]


def test_other_special_ids_can_be_given(toy):
    """Some models begin with their padding: here 5 is start and padding, 6 is unknown, 0 ends."""
    language = toy(batch=2, vocab=7, seed=3)
    ids = Vocabulary(pad_id=5, unk_id=6, bos_id=5, eos_id=0)
    fed = []

    def step(tokens, state):
        fed.append(tokens.tolist())
        return language.step(tokens, state)

    found = greedy(step, language.state(), OutputRules(torch.tensor([4, 4]), vocabulary=ids))
    assert fed[0] == [5, 5]
    assert all(set(h.tokens) <= {1, 2, 3, 4} for (h,) in found)


def test_log_softmax_is_torch_s_where_that_is_defined():
    logits = torch.randn(3, 7, dtype=torch.float64)
    logits[1, 2:] = -math.inf
    assert torch.allclose(log_softmax(logits), logits.log_softmax(-1), atol=1e-12)
    assert log_softmax(logits.half()).dtype == torch.float32
