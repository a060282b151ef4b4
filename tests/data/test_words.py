"""Words and their subwords: every visible character is in one word, every piece has its place."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.subword_training import train_tokenizer
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Link, pharaoh, subword_spans, words
from tests.tables import every

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["Don't: the cat sat, März 2021."] * 4, vocab_size=340)


def spelt(text: str) -> list[str]:
    return [text[slice(*word)] for word in words(text)]


@every(
    ("text", "expected"),
    [
        ("", []),
        (" \t", []),
        ("So., 4.–7. März", ["So", ".", ",", "4", ".", "–", "7", ".", "März"]),
        ("don’t 'tis", ["don’t", "'", "tis"]),
        ("dogs' l'été", ["dogs", "'", "l'été"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),  # accents of their own
        ("नमस्ते 21°", ["नमस्ते", "21", "°"]),
        ("2021年3月", ["2021", "年", "3", "月"]),
        ("2021년 a_b", ["2021년", "a", "_", "b"]),
        ("Üç ▁ 🐄", ["Üç", "▁", "🐄"]),
    ],
)
def test_words(text, expected):
    assert spelt(text) == expected


@given(TEXTS)
def test_each_visible_character_is_in_one_word(text):
    found = words(text)

    assert [span for span in found if span[0] >= span[1]] == []
    assert all(one[1] <= other[0] for one, other in pairwise(found))
    covered = {place for span in found for place in range(*span)}
    for place, character in enumerate(text):
        assert (place in covered) is not character.isspace()


@given(TEXTS)
def test_spaces_do_not_change_the_words(text):
    assert spelt(f"  {text} ") == spelt(text)


@given(TEXTS)
def test_pieces_cover_the_text_in_order(tokenizer, text):
    ids = tokenizer.encode(text)
    spans = subword_spans(tokenizer, ids, text)

    assert len(spans) == len(ids)
    assert {place for span in spans for place in range(*span)} == {*range(len(text))}
    assert spans == sorted(spans)


def test_a_piece_says_what_its_characters_are(tokenizer):
    text = "the cat sat, März"
    ids = tokenizer.encode(text)

    for index, span in zip(ids, subword_spans(tokenizer, ids, text), strict=True):
        assert tokenizer.subword(index).replace("▁", " ").strip() == text[slice(*span)].strip()


def test_the_bytes_of_a_character_cover_it_whole(tokenizer):
    text = "a 漢 ▁"
    ids = tokenizer.encode(text)
    found = [text[slice(*span)] for span in subword_spans(tokenizer, ids, text)]

    assert [one for one in found if one.strip()] == ["a", "漢", "漢", "漢", "▁", "▁", "▁", "▁"]


def test_symbols_cover_nothing(tokenizer):
    ids = [tokenizer.bos_id, *tokenizer.encode("the cat"), tokenizer.eos_id]
    first, *_, last = subword_spans(tokenizer, ids, "the cat")

    assert first[0] == first[1]
    assert last[0] == last[1]


def test_a_text_that_the_tokenizer_changes_keeps_its_places():
    tokenizer = train_tokenizer(["ﬁne Ｗord fine Word"] * 4, vocab_size=300, normalization="nfkc")
    text = "ﬁne Ｗord ﬁne"
    ids = tokenizer.encode(text)
    assert unicodedata.normalize("NFKC", text) == tokenizer.decode(ids) != text

    spans = subword_spans(tokenizer, ids, text)
    reached = {place for span in spans for place in range(*span)}
    assert {1, 2, 5, 6, 7, 10, 11} <= reached  # all that were not changed
    assert max(end for _, end in spans) == len(text)


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([], ""),
        ([Link((0, 2), (8, 10)), Link((3, 6), (0, 7))], "0-1 1-0"),
        ([Link((6, 7), (10, 11)), Link((3, 6), (8, 10))], "1-1"),  # a mark goes with its word
    ],
)
def test_pharaoh_numbers_what_spaces_separate(links, expected):
    assert pharaoh("in May, x", "Im-März ab.", links) == expected
