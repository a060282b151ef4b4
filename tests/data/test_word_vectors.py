"""Word vectors: what a file holds comes out; what is no such file is one line of error."""

import gzip

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.word_vectors import read_vectors
from glassformer.support.errors import InputError
from tests.tables import every

TOKENS = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters=" \ufeff"), min_size=1
)
NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(data=st.data(), width=st.integers(1, 5), sizes=st.booleans(), zipped=st.booleans())
def test_tokens_and_numbers_come_back(data, width, sizes, zipped, tmp_path_factory):
    row = st.tuples(TOKENS, st.lists(NUMBERS, min_size=width, max_size=width))
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    lines = [f"{token} {' '.join(map(str, numbers))}" for token, numbers in rows]
    if sizes or (width == 1 and lines[0].replace(" ", "").isdecimal()):
        lines.insert(0, f"{len(rows)} {width}")
    content = "".join(f"{line}\n" for line in lines).encode()
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    path.write_bytes(gzip.compress(content) if zipped else content)

    tokens, vectors = read_vectors(path)

    assert tokens == [token for token, _ in rows]
    assert torch.equal(vectors, torch.tensor([numbers for _, numbers in rows]))


@every(
    ("text", "message"),
    [
        ("a 1 2\nb 1\n", "line 2: expected a token and 2 finite numbers"),
        ("a 1 2\nb 1 2 3\n", "line 2: expected a token and 2 finite numbers"),
        ("a 1 2\nb 1 x\n", "line 2: expected a token and 2 finite numbers"),
        ("a 1 nan\n", "line 1: expected a token and 2 finite numbers"),
        ("A sentence.\n", "line 1: expected a token"),
        ("word\n", "line 1: expected a token and its finite numbers"),
        ("3 4\n", "no vectors: expected a token"),
    ],
)
def test_another_file_is_refused(text, message, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_vectors(path)


def test_a_token_of_glove_may_hold_spaces(tmp_path):
    (tmp_path / "glove.txt").write_text("the 1 2\n. . . 3 4 \n")
    tokens, vectors = read_vectors(tmp_path / "glove.txt")
    assert (tokens, vectors.tolist()) == (["the", ". . ."], [[1, 2], [3, 4]])
