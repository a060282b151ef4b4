"""Terms go to the places of the words that they translate, and never make a sentence more."""

from dataclasses import dataclass, field

import pytest

from glassformer.alignment import term_placement
from glassformer.alignment.term_placement import TermPlacement, with_forms
from glassformer.data.preprocessing import Preprocessing, Segment, joined
from glassformer.data.terms import Terms
from glassformer.data.words import Link, words
from glassformer.decoding.engine import SearchOptions
from glassformer.text_engine import SegmentTranslation, TextEngine, Translation
from glassformer.translator import Translator

TERMS = Terms.of({"man": "Kerl", "ladder": "Steigleiter", "dog": ["Töle", "Tölen"]})
SOURCE, FREE = "A man is on a ladder.", "Ein Mann ist auf einer Leiter."


def linked(source, target, *pairs):
    """Links between the words of two texts by their numbers, with weights."""
    left, right = words(source), words(target)
    return tuple(Link(left[a], right[b], weight) for a, b, weight in pairs)


SURE = linked(SOURCE, FREE, (0, 0, 0.5), (1, 0, 0.4), (1, 1, 0.9), (5, 5, 0.9), (5, 4, 0.4))


def test_a_term_takes_the_place_of_the_words_that_are_linked_to_it():
    assert with_forms(TERMS, (SOURCE, FREE), SURE) == ["Ein Kerl ist auf einer Steigleiter."]


def test_several_words_in_a_row_are_one_place():
    source, target = "a guide dog", "ein Hund zum Führen da"
    links = linked(source, target, (1, 3, 0.9), (2, 1, 0.8), (2, 2, 0.7))
    terms = Terms.of({"guide dog": "Blindenhund"})
    assert with_forms(terms, (source, target), links) == ["ein Blindenhund da"]


def test_each_form_is_a_choice_and_a_capital_at_the_start_of_a_sentence():
    links = linked("Dog on dog", "hund auf hund", (0, 0, 0.9), (2, 2, 0.9))
    texts = with_forms(Terms.of({"dog": ["a", "b"]}), ("Dog on dog", "hund auf hund"), links)
    assert texts == [f"{x} auf {y}" for x in ("a", "b", "A", "B") for y in ("a", "b")]


@pytest.mark.parametrize(
    ("pairs", "texts"),
    [
        ([(0, 0, 0.9), (1, 0, 0.5), (2, 1, 0.9)], ["x da ja"]),  # linked, if less surely
        ([(0, 0, 0.9), (3, 2, 0.9)], ["ein x ja", "ein da x"]),  # linked to no word
        ([(0, 0, 0.7), (2, 1, 0.9), (2, 2, 0.8)], ["x da ja"]),  # linked to no word surely
        ([(2, 0, 0.9), (2, 1, 0.9), (2, 2, 0.9)], ["ein da ja"]),  # left out
    ],
)
def test_a_term_without_a_sure_link(pairs, texts):
    source, target = "a dog sits .", "ein da ja"
    links = linked(source, target, *pairs)
    assert with_forms(Terms.of({"dog": "x"}), (source, target), links) == texts


def test_no_place_is_in_the_prefix_and_none_is_used_twice():
    texts = with_forms(TERMS, (SOURCE, FREE), SURE, least=9)
    assert texts == ["Ein Mann ist auf einer Steigleiter."]
    links = linked("a man dog", "ein Tier", (0, 0, 0.9), (1, 1, 0.9), (2, 1, 0.8))
    terms = Terms.of({"man": "Kerl", "dog": "Hund"})
    assert with_forms(terms, ("a man dog", "ein Tier"), links) == ["ein Kerl"]


@dataclass
class Scorer:
    """Calls the texts in `likely` probable, and all others less so by their length."""

    likely: list = field(default_factory=list)

    def score(self, sources, targets):
        assert {*sources} == {SOURCE}
        return [-1.0 if text in self.likely else -10.0 - len(text) for text in targets]

    def count_tokens(self, targets):
        return [len(text.split()) + 1 for text in targets]


@dataclass
class Free:
    """Translates each text as without terms."""

    text: str
    preprocessing = Preprocessing(languages=("en", "de"))
    joined = TextEngine.joined

    def translate(self, texts, options, prefixes, *, split):
        assert (options.n_best, prefixes, split) == (1, [""], False)
        return [Translation(self.text, -1.0) for _ in texts]


def settled(monkeypatch, searched, *others, likely=(), links=SURE):
    monkeypatch.setattr(term_placement, "align", lambda *_: [links])
    segment = Segment(SOURCE, range(len(SOURCE) + 1), [])

    def translation(text):
        part = SegmentTranslation(segment, text, (0, len(text)), -2.0)
        return Translation(text, -2.0, segments=(part,))

    best = Translation(
        searched, -2.0, tuple(map(translation, others)), segments=translation(searched).segments
    )
    placement = TermPlacement(Scorer([*likely]), Free(FREE), TERMS, SearchOptions(n_best=3))
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
    result = settled(monkeypatch, searched, FREE, searched, likely=[searched])

    assert result.text == "Ein Kerl ist auf einer Steigleiter."
    assert [other.text for other in result.alternatives][:1] == [FREE]
    assert result.score == pytest.approx((-10 - 35) / (12 / 6) ** 0.6)
    [part] = result.segments
    assert (part.text, part.span, part.score) == (result.text, (0, 35), result.score)


def test_a_good_search_is_taken_if_it_is_more_probable(monkeypatch):
    searched = "Da ist ein Kerl auf der Steigleiter."
    longer = "Ein Kerl. Steigleiter."

    assert settled(monkeypatch, searched, longer).text == "Ein Kerl ist auf einer Steigleiter."
    best = "Kerl auf der Steigleiter."
    result = settled(monkeypatch, best, longer, likely=[best])
    assert (result.text, result.score, result.alternatives) == (best, -2, ())


def test_without_a_place_the_translation_stays_free(monkeypatch):
    nowhere = linked(SOURCE, FREE, *((2, n, 0.9) for n in range(6)))
    searched = "Ein Kerl. Eine Steigleiter."

    result = settled(monkeypatch, searched, links=nowhere)

    assert result.text == FREE
    assert TERMS.missing(SOURCE, result.text) == ["man", "ladder"]


def test_a_real_model_s_translations_hold_their_terms_and_no_sentence_more(bundle_directory):
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
