"""The searches on a page find what the searches of `decoding` find."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding import beam, greedy
from glassformer.decoding.protocols import DEFAULT_IDS
from glassformer.tools.learn.lessons.beam.plain import beam_search
from glassformer.tools.learn.lessons.greedy.plain import greedy as greedy_search
from glassformer.tools.learn.table_model import TableModel


def language(seed):
    """Padding, unknown and start never come, and the end does not come first."""
    result = TableModel.random(3, 11, seed=seed)
    result.by_tokens[..., :3] = -60
    result.by_place[:, 0, DEFAULT_IDS.eos_id] = -60
    return result


@given(seed=st.integers(0, 10**6))
def test_greedy(seed):
    toy, lengths = language(seed), torch.tensor([1, 5, 11])
    found = greedy_search(toy.step, toy.state(), max_lengths=lengths, vocabulary=DEFAULT_IDS)
    theirs = greedy.greedy(toy.step, toy.state(), max_lengths=lengths)
    assert found == [list(target.tokens) for [target] in theirs]


@given(
    seed=st.integers(0, 10**6),
    width=st.sampled_from([1, 2, 3, 5]),
    alpha=st.sampled_from([0.0, 0.6, 2.0]),
    length=st.sampled_from([1, 4, 9]),
)
def test_beam_search(seed, width, alpha, length):
    toy = language(seed)
    target, score = beam_search(
        toy.step,
        toy.state([1]),
        max_length=length,
        beam=width,
        alpha=alpha,
        vocabulary=DEFAULT_IDS,
    )
    [[best]] = beam.beam_search(
        toy.step,
        toy.state([1]),
        max_lengths=torch.tensor([length]),
        beam=width,
        length_penalty=alpha,
    )
    assert target == list(best.tokens)
    assert abs(score - best.score) < 1e-6
