"""Normalising: one form for texts that look alike, and the way back to the text as typed."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.normaliser import normalised, with_places
from tests.tables import every

# Marks in two orders, conjoining jamo, a Bengali vowel of two signs, joiners, controls, spaces.
ODD = "aA é.e\u0301\u0323\u0302ô\u1100\u1161\u11a8\u09c7\u09be\u200b\u200d\ufeff\u00a0\t\n\u3000"
MORE = "\u200c\u0647\u0958\x00\x85\u212a\uff21\uff11\uff01\xad😀\ufe0f\U000e0041\U0001f3f4"
TEXTS = st.text(st.sampled_from(ODD + MORE), max_size=30)


@every(
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
        ("\uf0b7 A\u200e dog", "A dog"),
        ("می\u200c.", "می."),  # nothing to part
    ],
)
def test_one_form(typed, text):
    assert normalised(typed) == text


# Each stands for its kind: bidirectional marks, joiners, variation selectors, annotations …
UNSEEN = "\u200e\u200f\u202a\u202c\u2066\u2069\u200c\u200d\u034f\ufe0e\ufe0f"
UNSEEN += "\u2061\u2063\u180e\u115f\u3164"
UNSEEN += "\ufff9\ufffc\ufffd\U000e0001\U000e0041\U0001d173\ue000\uf0b7\U00100000\ufdd0\U0001fffe"
UNSEEN += "\u200b\u2060\ufeff\xad"


@every("unseen", UNSEEN)
@every("place", range(7))
def test_no_model_reads_a_character_that_no_reader_sees(unseen, place):
    text = "A dog."
    typed = text[:place] + 2 * unseen + text[place:]

    form = with_places(typed)

    assert normalised(typed) == form.text == text
    assert [typed[place] for place in form.places[:-1]] == list(text)


def test_the_rule_holds_for_whole_categories():
    signs = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}  # are seen
    hieroglyphs = set(range(0x13430, 0x13456))  # their controls say where a sign stands
    for code in set(range(0x110000)) - set(range(0xD800, 0xE000)) - signs - hieroglyphs:
        unseen = unicodedata.category(chr(code)) in ("Cc", "Cf", "Co") and not chr(code).isspace()
        if unseen:
            assert normalised(f"a{chr(code)}b") == "ab", hex(code)


@every(
    "text",
    [
        "می\u200cخواهم",  # Persian
        "ه\u200d.",  # an abbreviation
        "क्\u200dष क्\u200cष",  # Hindi
        "ශ්\u200dරී",  # Sinhala
        "ᠰᠠᠶᠢᠨ\u180eᠠ ᠠ\u180b",  # Mongolian
        "👩\u200d💻 👨🏽\u200d🚀 🏳\ufe0f\u200d🌈",
        "❤\ufe0f 1\ufe0f\u20e3 #\ufe0f\u20e3",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # England
    ],
)
def test_scripts_and_emoji_keep_the_characters_that_they_need(text):
    assert normalised(text) == with_places(text).text == text


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
