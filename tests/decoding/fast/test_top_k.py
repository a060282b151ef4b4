"""The most probable tokens of each row, against a plain softmax and a plain sort."""

import math

import pytest
import torch

from glassformer.decoding.fast.top_k import likeliest
from tests.tables import every


@every("rows", [0, 1, 33, 70])
@every("vocab", [5, 2003])  # 70 rows of 2,003 are looked at in two stages
@every("count", [1, 10])
def test_they_are_the_head_of_the_sorted_softmax(rows, vocab, count):
    seeded = torch.Generator().manual_seed(rows + vocab)
    logits = 3 * torch.randn(rows, vocab, generator=seeded, dtype=torch.float64)
    given = logits.clone()

    found, ids = likeliest(logits, count, never=[0, 4])

    assert logits.equal(given)
    expected = logits.softmax(dim=1).log()
    expected[:, [0, 4]] = -math.inf
    expected = expected.sort(dim=1, descending=True)
    possible = min(count, vocab - 2)
    assert found.shape == ids.shape == (rows, min(count, vocab))
    assert ids[:, :possible].equal(expected.indices[:, :possible])
    torch.testing.assert_close(found, expected.values[:, :count], rtol=0, atol=1e-12)


def test_it_finds_them_wherever_they_stand():
    """Each column in turn holds the greatest logit: in any group, or behind the last."""
    vocab = 1031
    _, ids = likeliest(torch.eye(vocab), 3)
    assert ids[:, 0].equal(torch.arange(vocab))


def test_where_nothing_is_possible_nothing_is_found():
    logits = torch.zeros(40, 1024)
    logits[7] = -math.inf
    found, _ = likeliest(logits, 2)
    assert found[7].tolist() == [-math.inf, -math.inf]
    assert found[[6, 8]].exp().flatten().tolist() == pytest.approx([1 / 1024] * 4)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_number_is_an_error(wrong):
    logits = torch.zeros(40, 1024)
    logits[33, 5] = wrong
    with pytest.raises(ValueError, match=r"NaN or \+inf as logits in rows \[33\]"):
        likeliest(logits, 2)


def test_half_precision_is_added_up_in_float32():
    found, _ = likeliest(torch.zeros(1, 1000).bfloat16(), 1)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(-math.log(1000), rel=1e-6)
