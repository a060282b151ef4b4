"""Terms go to the places of the words that they translate, and never make a sentence more."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.alignment import term_placement
from glassformer.alignment.term_placement import TermPlacement, term_places
from glassformer.data.preprocessing import Preprocessing, Segment, joined
from glassformer.data.splitting import sentence_spans
from glassformer.data.terms import Terms
from glassformer.data.words import Link, words
from glassformer.decoding.beam import penalty
from glassformer.text_engine import SegmentTranslation, TextEngine, Translation
from glassformer.translator import Sampling, Translator

TERMS = Terms.of({"man": "Kerl", "ladder": ["Steigleiter", "Steigleitern"]})
SOURCE, FREE = "A man is on a ladder.", "Ein Mann ist auf einer Leiter."


def linked(source, target, *pairs):
    """Links between the words of two texts by their numbers, with weights."""
    left, right = words(source), words(target)
    return tuple(Link(left[a], right[b], weight) for a, b, weight in pairs)


SURE = linked(SOURCE, FREE, (0, 0, 0.5), (1, 0, 0.4), (1, 1, 0.9), (5, 5, 0.9), (5, 4, 0.4))


def places(terms, source, target, links):
    """Each term of the source, and the text of its place."""
    found = term_places(Terms.of(terms), source, target, links)
    return {term: target[slice(*place)] for term, _, place in found if place}


def test_a_term_has_the_place_of_the_words_that_are_linked_to_it():
    terms = {"man": "Kerl", "ladder": "Steigleiter"}
    assert places(terms, SOURCE, FREE, SURE) == {"man": "Mann", "ladder": "Leiter"}


def test_several_words_in_a_row_are_one_place():
    source, target = "a guide dog", "ein Hund zum Führen da"
    links = linked(source, target, (1, 3, 0.9), (2, 1, 0.8), (2, 2, 0.7))
    terms = {"guide dog": "Blindenhund"}
    assert places(terms, source, target, links) == {"guide dog": "Hund zum Führen"}


@pytest.mark.parametrize(
    ("pairs", "place"),
    [
        ([(0, 0, 0.9), (1, 0, 0.5), (2, 1, 0.9)], {"dog": "ein"}),  # linked, if less surely
        ([(0, 0, 0.9), (2, 1, 0.9), (3, 2, 0.9)], {"dog": "ja"}),  # linked to no word
        ([(0, 0, 0.9), (3, 2, 0.9)], {"dog": "da"}),  # of two such the one at the same part
        ([(0, 0, 0.7), (2, 1, 0.9), (2, 2, 0.8)], {"dog": "ein"}),  # linked to no word surely
        ([(2, 0, 0.9), (2, 1, 0.9), (2, 2, 0.9)], {}),
    ],
)
def test_a_term_without_a_sure_link(pairs, place):
    source, free = "a dog sits .", "ein da ja"
    assert places({"dog": "x"}, source, free, linked(source, free, *pairs)) == place


def test_no_place_is_used_twice():
    links = linked("a man dog", "ein Tier", (0, 0, 0.9), (1, 1, 0.9), (2, 1, 0.8))
    terms = {"man": "Kerl", "dog": "Hund"}
    assert places(terms, "a man dog", "ein Tier", links) == {"man": "Tier"}


def test_a_form_that_the_translation_holds_is_no_place_for_another_term():
    links = linked("a man dog", "ein Kerl da", (0, 0, 0.9), (2, 1, 0.9), (2, 2, 0.9))
    terms = {"man": "Kerl", "dog": "Hund"}
    assert places(terms, "a man dog", "ein Kerl da", links) == {"man": "Kerl", "dog": "da"}


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 6), st.floats(0.2, 1.0))))
def test_places_are_apart_so_that_no_sentence_comes_to_the_others(pairs):
    source, target = "A man sits. A dog on a ladder", "Ein Mann. Ein Tier da."
    links = linked(source, target, *pairs)
    terms = Terms.of({"man": "Kerl", "dog": "Hund", "ladder": "Leiter"})
    spans = sorted(place for *_, place in term_places(terms, source, target, links) if place)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    for start, end in reversed(spans):
        target = f"{target[:start]}Hund{target[end:]}"
    assert len(list(sentence_spans(target, "de"))) <= 2


def placed(monkeypatch, best, *others, links=SURE, prefixes=()):
    """The translation with its terms, by a model to which the longest target is most probable."""
    monkeypatch.setattr(term_placement, "align", lambda _, sources, __: [links] * len(sources))
    segment = Segment(SOURCE, range(len(SOURCE) + 1), [])

    def translation(text, *alternatives):
        part = SegmentTranslation(segment, text, (0, len(text)), -2.0)
        return Translation(text, -2.0, alternatives, segments=(part,))

    def token_scores(sources, targets):
        assert sources == [SOURCE] * len(targets)
        return [[len(target) / 100 - 3, -1.0] for target in targets]

    bundle = SimpleNamespace(
        model=SimpleNamespace(config=SimpleNamespace(max_length=60)),
        target_tokenizer=SimpleNamespace(encode_batch=list),
    )
    preprocessing = Preprocessing(languages=("en", "de"))
    engine = TextEngine(None, None, None, longest=60, room=60, preprocessing=preprocessing)
    placement = TermPlacement(bundle, engine, TERMS, token_scores, 0.6)
    [result] = placement.placed([SOURCE], [translation(best, *map(translation, others))], prefixes)
    return result


def test_a_term_takes_its_place_in_its_most_probable_form(monkeypatch):
    result = placed(monkeypatch, FREE)

    assert result.text == "Ein Kerl ist auf einer Steigleitern."
    assert result.score == pytest.approx((len(result.text) / 100 - 4) / penalty(2, 0.6))
    [part] = result.segments
    assert (part.text, part.span, part.score) == (result.text, (0, 36), result.score)


def test_a_translation_that_holds_a_form_of_each_term_stays(monkeypatch):
    held = "Da ist ein Kerl auf einer Steigleiter."

    result = placed(monkeypatch, held)

    assert (result.text, result.score) == (held, -2)
    partly = placed(monkeypatch, "Ein Mann ist auf einer Steigleiter.")
    assert partly.text == "Ein Kerl ist auf einer Steigleiter."


def test_alternatives_have_the_terms_too_and_stay_different(monkeypatch):
    first, second = FREE.replace("Mann", "Herr"), FREE.replace("Ein", "Der")

    result = placed(monkeypatch, FREE, first, second)

    assert [other.text for other in result.alternatives] == ["Der Kerl ist auf einer Steigleitern."]


def test_no_term_begins_in_the_prefix(monkeypatch):
    result = placed(monkeypatch, FREE, prefixes=[" Ein Mann "])

    assert result.text == "Ein Mann ist auf einer Steigleitern."


def test_without_a_place_the_translation_stays_free(monkeypatch):
    nowhere = linked(SOURCE, FREE, *((2, n, 0.9) for n in range(6)))

    result = placed(monkeypatch, FREE, links=nowhere)

    assert result.text == FREE
    assert TERMS.missing(SOURCE, result.text) == ["man", "ladder"]


def test_a_real_model_s_translations_are_whole(bundle_directory):
    translator = Translator.load(bundle_directory, device="cpu")
    texts = ["A dog runs.\nTwo men sit in the snow.", "x", "The dog. A dog."]
    terms = {"dog": ["Hund", "Köter"], "snow": "Schnee"}

    for options in (
        {"beam": 4},
        {"beam": 3, "n_best": 2},
        {"beam": 1},
        {"prefixes": ["Zwei"] * 3},
        {"sampling": Sampling(seed=1), "no_repeat_ngram": 3},
    ):
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
