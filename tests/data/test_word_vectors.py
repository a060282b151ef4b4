"""Pretrained vectors: the rows that a file has, and the lines that it must not have."""

import pytest
import torch

from glassformer import ScaledEmbedding, read_vectors, train_tokenizer
from glassformer.errors import InputError


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["the cat sat", "the dog sat"], vocab_size=400)


def test_an_embedding_returns_the_vectors_of_the_file(tokenizer, tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("2 3\n▁cat 1 2 3\n▁dog -1 0.5 1e-3 \n", encoding="utf-8")
    embedding = ScaledEmbedding.from_vectors(read_vectors(file, tokenizer))
    tokens = torch.tensor([tokenizer.encode("cat dog")[:2]])
    expected = torch.tensor([[[1, 2, 3], [-1, 0.5, 1e-3]]])
    torch.testing.assert_close(embedding(tokens), expected)
    assert embedding.weight.shape == (tokenizer.vocab_size, 3)
    assert embedding.weight.requires_grad


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("▁cat 1 2\n▁dog 1\n", "line 2: 1 numbers; expected a subword and 2 numbers"),
        ("▁cat 1 x\n", "line 1: could not convert"),
        ("unknown 1 2\n", "it has none of the tokenizer's"),
        ("", "it has none of the tokenizer's"),
    ],
)
def test_a_file_that_is_no_table_of_vectors(tokenizer, tmp_path, text, fault):
    file = tmp_path / "vectors.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=fault):
        read_vectors(file, tokenizer)
