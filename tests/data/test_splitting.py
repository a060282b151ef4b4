"""Cutting texts: nothing is lost, no piece is too long, and the cut is where a reader would cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data import splitting
from glassformer.data.splitting import sentence_spans, split_long
from tests.tables import every

TEXTS = st.text(st.sampled_from('ab .!,;。、？…"»\u2028\n漢🐄'), max_size=120)


@given(TEXTS, st.integers(1, 20))
def test_the_pieces_are_the_text_and_none_is_too_long(text, limit):
    pieces = split_long(text, len, limit=limit)

    assert "".join(pieces) == text
    assert all(len(piece) <= limit for piece in pieces)
    assert len(pieces) == 1 or all(pieces)


@every(
    ("language", "text", "count"),
    [
        ("de", "Er wurde im 19. Jahrhundert geboren. Er starb.", 2),
        ("de_DE", "Am 2. Weltkrieg, am 5. Oktober", 1),
        ("deu", "Das war 1990. Danach kam er.", 2),
        ("tr", "II. Dünya Savaşı bitti.", 1),
        ("hu", "IV. Béla király volt. Ő élt.", 2),
        ("fr", "M. Dupont et Mme. Curie sont là. Il dort.", 2),
        ("es", "D. Juan vino. Se fue.", 2),
        ("nl", "Ik zag mevr. De Vries.", 1),
        ("en", "See vol. 2. It rains. Approx. 5 men came.", 3),
        ("en", "Plan B. Then we left on the 5. It rained.", 3),
        ("ja", "「やめろ。」と言った。", 1),
        ("ja", "「やめろ。」彼は言った。", 2),
    ],
)
def test_a_sentence_goes_on_after_ordinals_initials_and_titles(language, text, count):
    assert len(list(sentence_spans(text, language))) == count


def test_a_text_that_fits_is_not_cut():
    assert split_long("One. Two. Three.", len, limit=16) == ["One. Two. Three."]
    assert split_long("", len, limit=1) == [""]


@every(
    ("text", "pieces"),
    [
        ("One, two. Three, four five.", ["One, two. ", "Three, four five."]),
        ("He said “No.” She, he said, left.", ["He said “No.” ", "She, he said, left."]),
        ("One and two, three four five", ["One and two, ", "three four five"]),
        ("one two three four", ["one two ", "three four"]),
        ("一二三。四五六七八", ["一二三。", "四五六七八"]),
        ("一二三四、五六七八九", ["一二三四、", "五六七八九"]),
        ("3.14159265358979", ["3.141592", "65358979"]),
    ],
)
def test_the_best_place_near_the_middle_is_taken(text, pieces):
    assert split_long(text, len, limit=len(text) - 1) == pieces


def test_a_sentence_end_near_an_edge_is_left():
    assert split_long("Oh. one two three four five", len, limit=26) == [
        "Oh. one two ",
        "three four five",
    ]


def test_a_character_is_never_cut_however_long_it_counts():
    assert split_long("🐄🐄", lambda text: len(text.encode()), limit=3) == ["🐄", "🐄"]


def test_length_is_asked_as_often_as_the_pieces_want():
    asked = []

    split_long("x" * 5000, lambda text: asked.append(text) or len(text), limit=100)

    assert sum(map(len, asked)) <= 5000 * 10  # n log n: each halving reads the text once


@pytest.mark.parametrize("space", ["\u202f", "\u3000", "\u00a0", "\t", "\u2028"])
def test_other_white_space_stands_where_it_stood(space):
    text = f"A{space}. ? Is he here{space}? Yes."

    spans = list(sentence_spans(text))

    assert "".join(text[slice(*span)] for span in spans) == text
    assert text[slice(*spans[-1])] == "Yes."


def test_letters_are_looked_for_once(monkeypatch):
    sizes = []
    monkeypatch.setattr(splitting, "has_letters", lambda text: bool(sizes.append(len(text))))
    assert list(sentence_spans("<!--" * 500, "en")) == [(0, 2000)]
    assert sum(sizes) == 2000
