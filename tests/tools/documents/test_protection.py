"""Protected spans in translations: never lost, never doubled, in their order, at their words."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glassformer.data.protected import lost_spans, protected_spans
from glassformer.data.words import Link, words
from glassformer.text_engine import Translation
from glassformer.tools.documents.protection import ProtectingTranslator
from tests.tables import every


def kinds_of(text):
    spans = {}
    for span in protected_spans(text):
        spans.setdefault(span.kind, []).append(text[span.start : span.end])
    return spans


@every(
    ("source", "target"),
    [
        ("Hello {name}, you have %d items.", "hallo {name}, du hast %d Dinge."),
        ("{name} see items", "{name} siehe Dinge"),
        ("see items 👍🏽", "siehe Dinge 👍🏽"),
        ("See items! 😀 https://a.org/x", "siehe Dinge! 😀 https://a.org/x"),
        ("see (https://a.org) now", "siehe (https://a.org) jetzt"),
        ("see “{a}” and ({b}, {c}) now", "siehe “{a}” ({b}, {c}) jetzt"),
        ("Click <b>here</b> now.", "klicke <b>hier</b> jetzt."),
        ("Click <b>here <i>now</i></b>, you", "klicke <b>hier <i>jetzt</i></b>, du"),
        ("Click <br/>here", "klicke <br/>hier"),
        ("<b>{name}</b> see items", "<b>{name}</b> siehe Dinge"),
        ("<b>Click here</b>", "<b>klicke hier</b>"),
        ("Click </b> here <i> now", "klicke </b> hier <i> jetzt"),
        ("%s%s hello: %s/%s", "%s%s hallo: %s/%s"),
        ("hello%s", "hallo%s"),
        ("see `rm -r x` now", "siehe `rm -r x` jetzt"),
        ("5 km red hat", "5 km rot Hut"),
    ],
)
def test_lost_spans_come_back_at_their_words(words_alone, source, target):
    assert ProtectingTranslator(words_alone).translate([source])[0].text == target


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("red {a} hat", "{a} Hut rot"),
        ("see <b>red</b> hat", "Hut <b>rot</b> siehe"),
        ("see <b>red <i>hat</i></b>", "<b><i>Hut</i> rot</b> siehe"),
        ("red {a} hat %s you", "{a} du %s Hut rot"),  # of one kind: their order stays
    ],
)
def test_spans_move_with_their_words(backwards, source, target):
    assert ProtectingTranslator(backwards).translate([source])[0].text == target


def test_texts_without_spans_go_the_usual_way(words_alone):
    texts = ["hello you", "", "It costs $1,000, 100 % sure, on 4/3/2030.", " see  items "]
    options = {"beam": 3, "n_best": 2, "alignment": True, "prefixes": ["a", "", "", ""]}

    translations = ProtectingTranslator(words_alone).translate(texts, **options)

    assert words_alone.calls == [(texts, options)]
    assert translations == words_alone.translate(texts, **options)


def test_a_text_of_spans_alone_never_meets_the_model(words_alone):
    texts = ["😀 😀!", "https://a.org/x", "hello", "{a}: {b}"]

    translations = ProtectingTranslator(words_alone).translate(texts, alignment=True)

    assert [translation.text for translation in translations] == [*texts[:2], "hallo", texts[3]]
    assert translations[3].alignment == (Link((0, 3), (0, 3)), Link((5, 8), (5, 8)))
    assert words_alone.calls == [(["hello"], {"alignment": True})]


def test_what_the_model_keeps_is_left_as_it_is(words_alone):
    words_alone.keeps = r"\{a\}"

    translations = ProtectingTranslator(words_alone).translate(["see {a} here, <x> and {a}"])

    assert translations == [Translation("see {a} here, <x> and {a}", -1.0)]
    assert len(words_alone.calls) == 1


class Answers:
    """Gives each text's answers: the first translation, then the next."""

    def __init__(self, answers):
        self.answers = {text: list(texts) for text, texts in answers.items()}

    def translate(self, texts, **_options):
        found = [self.answers[text].pop(0) for text in texts]
        return [x if isinstance(x, Translation) else Translation(x, -1.0) for x in found]


@pytest.mark.parametrize(
    "first",
    ["a {n} {n}", "a", "a {N}", "a <b>x</b> {n}"],
    ids=["doubled", "lost", "changed", "kept"],
)
def test_doubled_and_changed_spans_are_faults_too(first):
    answers = Answers({"x {n} y": [first], "x y": ["xx yy"]})

    text = ProtectingTranslator(answers).translate(["x {n} y"])[0].text

    assert text == (first if first.endswith("> {n}") else "xx {n} yy")


def test_only_the_kinds_with_a_fault_leave_the_text():
    answers = Answers({"x {n} y 😀": ["xx {n}"], "x {n} y": ["xx {n} yy"]})

    assert ProtectingTranslator(answers).translate(["x {n} y 😀"])[0].text == "xx {n} yy 😀"


def test_a_second_loss_takes_all_spans_out():
    answers = Answers({"x {n} y 😀": ["xx {n}"], "x {n} y": ["xx"], "x y": ["xx yy"]})

    assert ProtectingTranslator(answers).translate(["x {n} y 😀"])[0].text == "xx {n} yy 😀"


def test_a_span_never_grows_into_its_new_neighbour():
    """The address would go on with ",7" if nothing stood between."""
    answers = Answers({"https://a.org x": ["x"], "x": [",7", ",7"]})

    text = ProtectingTranslator(answers).translate(["https://a.org x"])[0].text

    assert text == "https://a.org ,7"


def test_alternatives_keep_their_spans_or_are_left_out():
    kept = replace(Translation("{n} a", -1.0), alternatives=(Translation("b", -2.0),))
    bare = replace(Translation("c", -1.0), alternatives=(Translation("d d", -2.0),))
    answers = Answers({"{n} x": [kept], "{n} y": ["lost"], "y": [bare]})

    first, second = ProtectingTranslator(answers).translate(["{n} x", "{n} y"])

    assert first == Translation("{n} a", -1.0)
    assert [second.text, *(other.text for other in second.alternatives)] == ["{n} c", "{n} d d"]


def test_numbers_with_units_may_change_their_form():
    answers = Answers({"3.5 km x": ["x 3,5 Kilometer"], "5 km y": ["y 6 km"], "y": ["yy"]})

    texts = [t.text for t in ProtectingTranslator(answers).translate(["3.5 km x", "5 km y"])]

    assert texts == ["x 3,5 Kilometer", "5 km yy"]


def test_a_prefix_stays_in_front_and_its_spans_are_its_own(words_alone):
    protecting = ProtectingTranslator(words_alone)

    translations = protecting.translate(["{a} see items", "{b} hat"], prefixes=["Ja,", "{b}"])

    assert [translation.text for translation in translations] == ["Ja, {a} siehe Dinge", "{b} Hut"]


def test_the_alignment_is_of_the_final_text(backwards):
    source = "Red {a} <b>hat</b>, you"

    translation = ProtectingTranslator(backwards).translate([source], alignment=True)[0]

    links = {
        (source[slice(*link.source)], translation.text[slice(*link.target)])
        for link in translation.alignment
    }
    assert {("Red", "rot"), ("hat", "Hut"), ("you", "du")} <= links
    assert {("{a}", "{a}"), ("<b>", "<b>"), ("</b>", "</b>")} <= links
    assert ProtectingTranslator(backwards).translate([source])[0].alignment is None


def test_wrong_calls_are_the_translators_affair(words_alone):
    with pytest.raises(ValueError, match="zip"):
        ProtectingTranslator(words_alone).translate(["{a} x"], prefixes=["a", "b"])


PIECES = ["{a}", "{b}", "%s", "<b>", "</b>", "<i>", "</i>", "<br>", "😀", "https://a.org", "`c`"]
PIECES += ["hello", "red", "hat", "you", ",", ".", "(", ")", " ", " ", " "]


class Shuffled:
    """Any order of the words, and any links."""

    def __init__(self, draw):
        self.draw = draw

    def translate(self, texts, **options):
        return [self._translation(text, options) for text in texts]

    def _translation(self, text, options):
        order = self.draw(st.permutations(text.split()))
        target = " ".join(order[: self.draw(st.integers(0, len(order)))])
        sources, targets = words(text), words(target)
        weights = st.floats(0.2, 1)
        links = [
            Link(self.draw(st.sampled_from(sources)), word, self.draw(weights))
            for word in targets
            if self.draw(st.booleans())
        ]
        return Translation(
            target, -1.0, alignment=tuple(links) if options.get("alignment") else None
        )


@given(st.lists(st.sampled_from(PIECES), max_size=14), st.data())
def test_nothing_is_lost_or_doubled_whatever_the_model_does(pieces, data):
    source = "".join(pieces)
    # In "hello{a}()" the model reads "hello()", which is code only without the placeholder.
    assume(not kinds_of("".join(piece for piece in pieces if not kinds_of(piece))))

    translation = ProtectingTranslator(Shuffled(data.draw)).translate([source], alignment=True)[0]

    assert kinds_of(translation.text) == kinds_of(source)
    assert lost_spans(source, translation.text) == []
    for link in translation.alignment or ():
        start, end = link.source
        assert 0 <= start < end <= len(source)
        start, end = link.target
        assert 0 <= start < end <= len(translation.text)
