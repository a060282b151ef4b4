"""The scaled embedding: which row, how large, and which ids it refuses."""

import math

import pytest
import torch

from glassformer.model.embeddings import ScaledEmbedding, check_ids


def test_a_token_reads_its_row_times_the_root_of_the_width():
    embedding = ScaledEmbedding(11, 7)
    tokens = torch.tensor([[3, 10, 0], [3, 3, 5]])
    expected = [
        [[x * math.sqrt(7) for x in embedding.weight[t].tolist()] for t in row]
        for row in tokens.tolist()
    ]
    torch.testing.assert_close(embedding(tokens), torch.tensor(expected))


def test_without_scale_the_rows_are_read_as_they_are():
    embedding = ScaledEmbedding(11, 7, scale=False)
    assert embedding(torch.tensor([[4]]))[0, 0].equal(embedding.weight[4])


def test_embedded_tokens_begin_with_a_variance_of_one():
    torch.manual_seed(0)
    embedding = ScaledEmbedding(499, 64)
    vectors = embedding(torch.arange(499)[None])
    assert vectors.std().item() == pytest.approx(1, abs=0.02)
    assert embedding.weight.std().item() == pytest.approx(1 / 8, abs=0.003)


def test_each_use_of_a_token_adds_to_its_gradient():
    embedding = ScaledEmbedding(5, 4)
    embedding(torch.tensor([[1, 3, 1]])).sum().backward()
    assert embedding.weight.grad[:, 0].tolist() == [0.0, 4.0, 0.0, 2.0, 0.0]


@pytest.mark.parametrize(
    ("tokens", "wrong"), [([[1, 11]], 11), ([[1, -1]], -1), ([[40], [50]], 40)]
)
def test_ids_outside_the_vocabulary_are_refused_and_the_first_is_named(tokens, wrong):
    message = rf"id {wrong} is outside the vocabulary of 11 \(ids 0 to 10\)"
    with pytest.raises(ValueError, match=message):
        ScaledEmbedding(11, 4)(torch.tensor(tokens))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
def test_ids_must_be_integers(dtype):
    with pytest.raises(TypeError, match=f"source: ids must be integers, got {dtype}"):
        check_ids(torch.ones(2, 3).to(dtype), 5, what="source")


def test_the_first_and_the_last_id_and_no_id_are_accepted():
    embedding = ScaledEmbedding(11, 4)
    assert embedding(torch.tensor([[0, 10]])).shape == (1, 2, 4)
    assert embedding(torch.zeros(3, 0, dtype=torch.long)).shape == (3, 0, 4)
