"""Terms go to the places of the words that they translate, and never make a sentence more."""

from dataclasses import dataclass

import pytest

from glassformer.alignment import term_placement
from glassformer.alignment.term_placement import TermPlacement, with_terms
from glassformer.data.preprocessing import Preprocessing, Segment, joined
from glassformer.data.terms import Terms
from glassformer.data.words import Link, words
from glassformer.decoding.engine import SearchOptions
from glassformer.text_engine import SegmentTranslation, TextEngine, Translation
from glassformer.translator import Translator

TERMS = Terms.of({"man": "Kerl", "ladder": "Steigleiter"})
SOURCE, FREE = "A man is on a ladder.", "Ein Mann ist auf einer Leiter."


def linked(source, target, *pairs):
    """Links between the words of two texts by their numbers, with weights."""
    left, right = words(source), words(target)
    return tuple(Link(left[a], right[b], weight) for a, b, weight in pairs)


SURE = linked(SOURCE, FREE, (0, 0, 0.5), (1, 0, 0.4), (1, 1, 0.9), (5, 5, 0.9), (5, 4, 0.4))


def test_a_term_takes_the_place_of_the_words_that_are_linked_to_it():
    text = with_terms(TERMS, (SOURCE, FREE), SURE, "")
    assert text == "Ein Kerl ist auf einer Steigleiter."


def test_several_words_in_a_row_are_one_place():
    source, target = "a guide dog", "ein Hund zum Führen da"
    links = linked(source, target, (1, 3, 0.9), (2, 1, 0.8), (2, 2, 0.7))
    terms = Terms.of({"guide dog": "Blindenhund"})
    assert with_terms(terms, (source, target), links, "") == "ein Blindenhund da"


@pytest.mark.parametrize(
    ("searched", "target"),
    [("", "a da"), ("Da. b", "b da"), ("B da. Da", "B da"), ("ba", "a da")],
)
def test_the_form_is_the_one_that_the_search_has_found(searched, target):
    links = linked("Dog sits", "tier da", (0, 0, 0.9))
    terms = Terms.of({"dog": ["a", "b"]})
    assert with_terms(terms, ("Dog sits", "tier da"), links, searched) == target


@pytest.mark.parametrize(
    ("pairs", "target"),
    [
        ([(0, 0, 0.9), (1, 0, 0.5), (2, 1, 0.9)], "x da ja"),  # linked, if less surely
        ([(0, 0, 0.9), (2, 1, 0.9), (3, 2, 0.9)], "ein da x"),  # linked to no word
        ([(0, 0, 0.9), (3, 2, 0.9)], "ein x ja"),  # of two such the one at the same part
        ([(0, 0, 0.7), (2, 1, 0.9), (2, 2, 0.8)], "x da ja"),  # linked to no word surely
        ([(2, 0, 0.9), (2, 1, 0.9), (2, 2, 0.9)], "ein da ja"),  # left out
    ],
)
def test_a_term_without_a_sure_link(pairs, target):
    source, free = "a dog sits .", "ein da ja"
    links = linked(source, free, *pairs)
    assert with_terms(Terms.of({"dog": "x"}), (source, free), links, "") == target


def test_no_place_is_in_the_prefix_and_none_is_used_twice():
    text = with_terms(TERMS, (SOURCE, FREE), SURE, "", least=9)
    assert text == "Ein Mann ist auf einer Steigleiter."
    links = linked("a man dog", "ein Tier", (0, 0, 0.9), (1, 1, 0.9), (2, 1, 0.8))
    terms = Terms.of({"man": "Kerl", "dog": "Hund"})
    assert with_terms(terms, ("a man dog", "ein Tier"), links, "") == "ein Kerl"


@dataclass
class Free:
    """Translates each text as without terms."""

    text: str
    preprocessing = Preprocessing(languages=("en", "de"))
    joined = TextEngine.joined

    def translate(self, texts, options, prefixes, *, split):
        assert (options.n_best, prefixes, split) == (1, [""], False)
        return [Translation(self.text, -1.5) for _ in texts]


def settled(monkeypatch, searched, *others, links=SURE):
    monkeypatch.setattr(term_placement, "align", lambda *_: [links])
    segment = Segment(SOURCE, range(len(SOURCE) + 1), [])

    def translation(text, *alternatives):
        part = SegmentTranslation(segment, text, (0, len(text)), -2.0)
        return Translation(text, -2.0, alternatives, segments=(part,))

    best = translation(searched, *map(translation, others))
    placement = TermPlacement(None, Free(FREE), TERMS, SearchOptions(n_best=3))
    [result] = placement.settled([SOURCE], [best], ())
    return result


@pytest.mark.parametrize(
    "searched",
    [
        "Ein Kerl ist auf einer Leiter. Ein Mann ist auf einer Steigleiter.",
        "Ein Kerl ist auf einer Leiter. Steigleiter",
        "Ein Kerl ist Steigleiter auf einer Leiter.",  # both words
    ],
)
def test_a_glossary_makes_no_translation_longer(monkeypatch, searched):
    result = settled(monkeypatch, searched, FREE, "Ein Kerl. Steigleiter.")

    assert (result.text, result.score) == ("Ein Kerl ist auf einer Steigleiter.", -1.5)
    assert [other.text for other in result.alternatives] == [FREE]
    [part] = result.segments
    assert (part.text, part.span) == (result.text, (0, 35))


def test_a_search_that_makes_nothing_longer_is_kept(monkeypatch):
    searched = "Da ist ein Kerl auf Steigleiter."

    result = settled(monkeypatch, searched, "Ein Kerl. Steigleiter.")

    assert (result.text, result.score, result.alternatives) == (searched, -2, ())


def test_without_a_place_the_translation_stays_free(monkeypatch):
    nowhere = linked(SOURCE, FREE, *((2, n, 0.9) for n in range(6)))

    result = settled(monkeypatch, "Ein Kerl. Eine Steigleiter.", links=nowhere)

    assert result.text == FREE
    assert TERMS.missing(SOURCE, result.text) == ["man", "ladder"]


def test_a_real_model_s_translations_are_whole(bundle_directory):
    translator = Translator.load(bundle_directory, device="cpu")
    texts = ["A dog runs.\nTwo men sit in the snow.", "x", "The dog. A dog."]
    terms = {"dog": ["Hund", "Köter"], "snow": "Schnee"}

    for options in ({"beam": 4}, {"beam": 3, "n_best": 2}, {"beam": 1}, {"prefixes": ["Zwei"] * 3}):
        found = translator.translate(texts, glossary=terms, alignment=True, **options)
        again = translator.translate(texts, glossary=Terms.of(terms), **options)
        assert [t.text for t in found] == [t.text for t in again]
        for text, translation in zip(texts, found, strict=True):
            shown = [part.text for part in translation.segments]
            segments = [part.segment for part in translation.segments]
            whole, spans = joined(text, segments, shown, language="de")
            assert whole == translation.text
            assert [part.span for part in translation.segments] == spans
            assert {link.target for link in translation.alignment} <= {*words(translation.text)}
