"""Reasons to doubt a translation: each where it holds, and none of a right one."""

from dataclasses import replace

import pytest

from glassformer.alignment.doubts import NO_WORD, doubts, lost_numbers
from glassformer.bundle import load_bundle
from glassformer.data.preprocessing import SINGLE_SENTENCES, SourceLengths
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.words import Link, words
from glassformer.text_engine import Translation
from tests.tables import every

SOURCE = "Two men sit in 1998."


@pytest.fixture(scope="module")
def bundle(bundle_directory):
    known = train_tokenizer(["Two men sit in 1998.", "One man sits."] * 9, vocab_size=310)
    lengths = SourceLengths(10, 40, 0.0)
    return replace(load_bundle(bundle_directory), source_tokenizer=known, source_lengths=lengths)


def aligned(source: str, target: str, share: float = 1.0) -> Translation:
    """A translation of which this share of the source's words is aligned."""
    spans = words(source)
    links = tuple(Link(span, (0, 1)) for span in spans[: round(share * len(spans))])
    return Translation(target, 0.0, alignment=links)


def test_a_right_translation_has_none(bundle):
    assert doubts(bundle, SOURCE, aligned(SOURCE, "1998 sitzen zwei Männer.")) == []


def test_a_source_longer_than_the_training(bundle):
    source = 3 * SOURCE
    found = doubts(bundle, source, aligned(source, "1998"))
    assert found == ["The text is longer than 99 of 100 texts of the training."]
    for lengths in (None, SINGLE_SENTENCES):  # nobody has measured the training
        unmeasured = replace(bundle, source_lengths=lengths)
        assert doubts(unmeasured, source, aligned(source, "1998")) == []


def test_letters_that_the_training_had_not(bundle):
    source = "Two men мир."
    assert doubts(bundle, source, aligned(source, "Zwei Männer ŵ 😀.")) == [
        "The training had hardly any text with these letters: и, м, р, ŵ."
    ]


def test_numbers_that_are_lost(bundle):
    assert doubts(bundle, SOURCE, aligned(SOURCE, "Zwei Männer sitzen.")) == [
        "The translation lacks these numbers of the text: 1998."
    ]
    years = " ".join(map(str, range(1990, 2020)))
    [*_, found] = doubts(bundle, years, aligned(years, "Zwei"))
    assert found.endswith("1990, 1991, 1992, 1993, 1994, 1995 …")


def test_words_that_nothing_is_aligned_with(bundle):
    found = "Fewer than half of the text's words are aligned with the translation."
    assert doubts(bundle, SOURCE, aligned(SOURCE, "1998", share=0.2)) == [found]
    assert doubts(bundle, SOURCE, aligned(SOURCE, "1998", share=0.5)) == []
    assert doubts(bundle, "1998", aligned("1998", "1998", share=0)) == []  # it is copied


@every(
    ("source", "doubted"),
    [
        ("hello world", True),
        ("HELLO WORLD!", True),
        ("Schöne Grüße aus 日本", True),
        ("Two cats sat.", False),
        ("TWO MEN SIT.", False),  # the model reads them in lower case
        ("B 12", False),
        ("AB12 3rd", False),
    ],
)
def test_a_text_without_a_known_word(bundle, source, doubted):
    bundle = replace(bundle, normalisation="text")
    assert (NO_WORD in doubts(bundle, source, Translation("9. Juni", 0.0))) is doubted


def test_a_text_that_stays_is_doubted_unless_the_model_copies_it(bundle):
    for source, doubted in (("hello world", True), ("stone tea", False), ("user_name", False)):
        assert (NO_WORD in doubts(bundle, source, Translation(source, 0.0))) is doubted, source


def test_spans_that_are_lost(bundle):
    source = "Two {n} men, {n}, sit at https://a.org/x, 5 km, F16."
    *_, found = doubts(bundle, source, Translation("Zwei {n} Männer", 0.0))
    assert found == "The translation lacks these parts, which should stay: {n}, https://a.org/x."


@every(
    ("source", "target"),
    [
        ("2 dogs at 12", "zwei Hunde um zwölf"),
        ("at 5:30 p.m.", "um 17:30 Uhr"),
        ("um 17:30 Uhr", "at 5:30 p.m."),
        ("1,200,000 of 3.14", "1200000 von 3,14"),
        ("4/20/98 and 2005", "20.04.1998 und 05"),
        ("٢٠٣٠", "2030"),
        ("9" * 9000, "9" * 9000),
    ],
)
def test_numbers_may_be_written_otherwise(source, target):
    assert lost_numbers(source, target) == []
