"""Normalising: one form for texts that look alike, and the way back to the text as typed."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.normaliser import normalised, with_places

# Marks in two orders, conjoining jamo, a Bengali vowel of two signs, joiners, controls, spaces.
ODD = "aA é.e\u0301\u0323\u0302ô\u1100\u1161\u11a8\u09c7\u09be\u200b\u200d\ufeff\u00a0\t\n\u3000"
MORE = "\u0958\x00\x85\u212a\uff21\uff11\uff01\xad😀"
TEXTS = st.text(st.sampled_from(ODD + MORE), max_size=30)


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("A dog.", "A dog."),
        ("A  dog\u00a0runs\t.", "A dog runs ."),
        ("\ufeffA dog\u200b.\r", "A dog."),
        ("cafe\u0301", "café"),
        ("e\u200b\u0301", "é"),
        ("\uff21\uff11\uff01", "A1\uff01"),
        ("a\x00b\x9fc\x85d", "abc d"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩\u200d💻", "👩\u200d💻"),
        (" \t\u200b", ""),
    ],
)
def test_one_form(typed, text):
    assert normalised(typed) == text


@given(TEXTS)
def test_the_form_is_nfc_and_stays(text):
    form = normalised(text)
    assert unicodedata.is_normalized("NFC", form)
    assert normalised(form) == form
    assert form == form.strip()
    assert "  " not in form


@given(TEXTS)
def test_each_character_has_its_place(text):
    form = with_places(text)
    assert form.text == normalised(text)
    assert len(form.places) == len(form.text) + 1
    assert list(form.places) == sorted(form.places)
    assert 0 <= form.places[0] <= form.places[-1] <= len(text)
    for word in re.finditer(r"[^ ]+", form.text):
        start, end = form.places[word.start()], form.places[word.end()]
        assert normalised(text[start:end]) == word.group()


def test_a_word_is_found_where_it_was_typed():
    typed = "\u00a0 Ein Cafe\u0301\u200b  au lait "
    form = with_places(typed)
    start = form.text.index("Café")
    assert typed[form.places[start] : form.places[start + 4]] == "Cafe\u0301\u200b"
    assert typed[form.places[0] : form.places[-1]] == "Ein Cafe\u0301\u200b  au lait"
