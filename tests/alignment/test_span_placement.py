"""Protected spans in translations: never lost, never doubled, in their order, at their words."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from string import ascii_letters, digits

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glassformer.alignment import align as alignment
from glassformer.alignment import span_placement
from glassformer.alignment.cross_attention import UnalignedError
from glassformer.alignment.restoring import restored
from glassformer.data.bare_text import BareText, Mark
from glassformer.data.digits import large_numbers
from glassformer.data.known import Known
from glassformer.data.protected import lost_spans, mark_of, protected_spans
from glassformer.data.words import Link, words
from glassformer.decoding.protocols import Hypothesis
from glassformer.translator import Translator
from tests.data.exact_translator import ExactEngine, exact_translator
from tests.tables import every

WORDS = {"hello": "hallo", "you": "du", "have": "hast", "items": "Dinge", "see": "siehe"}
WORDS |= {"click": "klicke", "here": "hier", "now": "jetzt", "red": "rot", "hat": "Hut"}
WORDS |= {"x": "xx", "y": "yy", "z": "zz"}
STOCK = exact_translator()


@dataclass(frozen=True)
class Answers(ExactEngine):
    """Gives the answers to each text, the best first; a text without answers stays."""

    answer: object = None
    seen: list = None

    def decode(self, job, options):  # noqa: ARG002
        source, target = self.tokenizers
        texts = [source.decode(ids) for ids in job.sources]
        self.seen.extend(texts)
        forced = [target.decode(ids) for ids in job.prefixes] or [""] * len(texts)
        return [
            [
                Hypothesis(tuple(target.encode(begin + each)), -1.0 - n, -1.0 - n, finished=True)
                for n, each in enumerate(self.answer(text))
            ]
            for text, begin in zip(texts, forced, strict=True)
        ]


_SIGNED = [f"placeholder {sign}" for sign in "{%$"]
_KEPT = [*_SIGNED, "tag <", "code", "url", "email", "emoji"]
COPIES = Known(spans=dict.fromkeys(_KEPT, (5, 5)))  # of a training that has such spans


def translator_of(answer, *, known=None):
    """A translator whose engine answers each text by a function, or by a table."""
    if isinstance(answer, dict):
        table = answer
        answer = lambda text: table.get(text, [text])  # noqa: E731
    bundle = replace(STOCK.bundle, known=known or COPIES, normalisation="none")
    return Translator(bundle, engine=Answers(STOCK.tokenizers, answer=answer, seen=[]))


def by_words(order=lambda found: found):
    """Translates word for word, in an order, and loses all that it does not know."""

    def answer(text):
        found = [text[slice(*span)] for span in words(text)]
        known = [word for word in order(found) if word.lower() in WORDS or word in ".,:!?"]
        text = " ".join(WORDS.get(word.lower(), word) for word in known)
        return [text.replace(" .", ".").replace(" ,", ",").replace(" !", "!").replace(" :", ":")]

    return answer


@pytest.fixture(autouse=True)
def links(monkeypatch):
    """Each known word is linked to its translation, and a sign to the same sign."""

    def align(_bundle, sources, targets):
        return [
            tuple(
                Link(one, other, 0.9)
                for one in words(source)
                for other in words(target)
                if WORDS.get(source[slice(*one)].lower(), source[slice(*one)])
                == target[slice(*other)]
            )
            for source, target in zip(sources, targets, strict=True)
        ]

    for module in (span_placement, alignment):
        monkeypatch.setattr(module, "align", align)


def translated(answer, source, **options):
    return translator_of(answer).translate([source], **options)[0]


@every(
    ("source", "target"),
    [
        ("Hello {name}, you have %d items.", "hallo {name}, du hast %d Dinge."),
        ("{name} see items", "{name} siehe Dinge"),
        ("See items! 😀 https://a.org/x", "siehe Dinge! 😀 https://a.org/x"),
        ("see (https://a.org) now", "siehe (https://a.org) jetzt"),
        ("see “{a}” and ({b}, {c}) now", "siehe “{a}” ({b}, {c}) jetzt"),
        ("Click <b>here</b> now.", "klicke <b>hier</b> jetzt."),
        ("Click **here** now.", "klicke **hier** jetzt."),
        ("Click <b>here <i>now</i></b>, you", "klicke <b>hier <i>jetzt</i></b>, du"),
        ("Click <br/>here", "klicke <br/>hier"),
        ("<b>Click here</b>", "<b>klicke hier</b>"),
        ("Click </b> here <i> now", "klicke </b> hier <i> jetzt"),
        ("hello%s", "hallo%s"),
        ("see `rm -r x` now", "siehe `rm -r x` jetzt"),
        ("5 km red hat", "5 km rot Hut"),
        ("{a}: {b}", "{a}: {b}"),
    ],
)
def test_lost_spans_come_back_at_their_words(source, target):
    assert translated(by_words(), source).text == target


@every(
    ("source", "target"),
    [
        ("red {a} hat", "{a} Hut rot"),
        ("see <b>red</b> hat", "Hut <b>rot</b> siehe"),
        ("see <b>red <i>hat</i></b>", "<b><i>Hut</i> rot</b> siehe"),
        ("red %d hat %s you", "%d du %s Hut rot"),  # without names: their order stays
    ],
)
def test_spans_move_with_their_words(source, target):
    assert translated(by_words(lambda found: found[::-1]), source).text == target


NUMBERS = Known(spans={"number": (3, 4)})  # of a training whose targets keep three of four
DIGITS = st.integers(13, 99_999).map(str)
NUMBER = st.one_of(
    DIGITS,
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["", "$", "(", "“", "#", "−"]),
        DIGITS,
        st.sampled_from(".,%)?"),
    ),
    st.builds("{}:{}".format, st.integers(13, 23), st.integers(13, 59)),
    st.integers(1_000, 9_999_999).map("{:,}".format),
    st.tuples(st.integers(13, 999), st.integers(100, 999)).map("{0[0]} {0[1]}".format),
)


@given(
    st.lists(st.one_of(st.sampled_from([*WORDS]), NUMBER), min_size=1, max_size=9),
    st.sampled_from(["", r"\g<0>11111", "600000"]),
)
def test_no_number_is_lost_or_doubled(parts, garbled):
    """The model drops each number, or writes another one."""
    assume({*parts} & {*WORDS})
    source, translate = " ".join(parts), by_words()

    def answer(text):
        return [re.sub(r"\d+", garbled, text) if garbled else translate(text)[0]]

    target = translator_of(answer, known=NUMBERS).translate([source])[0].text
    numbers = Counter(source[slice(*span)] for span in large_numbers(source))
    for number, count in numbers.items():
        assert len(re.findall(rf"(?<!\d){re.escape(number)}(?!\d)", target)) >= count, target
    assert Counter(re.findall(r"\d", target)) == Counter(re.findall(r"\d", source))


@every(
    ("source", "target"),
    [
        ("See 47 items now.", "siehe 47 Dinge jetzt."),
        ("red 47 hat, you see 93", "rot 47 Hut, du siehe 93"),
        ("See <b>47</b> items", "siehe <b>47</b> Dinge"),
        ("See items on the 47th", "siehe Dinge"),  # a part of a word
    ],
)
def test_lost_numbers_come_back_at_their_words(source, target):
    translator = translator_of(
        by_words(), known=replace(COPIES, spans=COPIES.spans | NUMBERS.spans)
    )
    assert translator.translate([source])[0].text == target


def test_alternatives_and_links_have_the_numbers():
    table = {"see 47 items": ["siehe 4 Dinge"], "see items": ["siehe Dinge", "Dinge"]}
    translator = translator_of(table, known=NUMBERS)
    [best] = translator.translate(["see 47 items"], n_best=2, alignment=True)
    assert [best.text, *(each.text for each in best.alternatives)] == ["siehe 47 Dinge", "47 Dinge"]
    links = {(link.source, link.target) for link in best.alignment}
    assert links == {((0, 3), (0, 5)), ((4, 6), (6, 8)), ((7, 12), (9, 14))}


def test_numbers_that_the_second_reading_loses_come_back():
    table = {"see 47 hat 93": ["siehe 47 Hut"], "see 47 hat": ["siehe Hut"]}
    translator = translator_of(table | {"see hat": ["siehe Hut"]}, known=NUMBERS)
    assert translator.translate(["see 47 hat 93"])[0].text == "siehe 47 Hut 93"


def test_without_the_longer_numbers_the_others_may_come_through():
    table = {"see 4711 hat 93": ["siehe Hut"], "see hat 93": ["siehe Hut 93"]}
    translator = translator_of(table, known=NUMBERS)
    assert translator.translate(["see 4711 hat 93"])[0].text == "siehe 4711 Hut 93"
    many = " ".join(f"hat {number}" for number in range(20, 52))
    translator = translator_of(by_words(), known=NUMBERS)
    translator.translate([many])
    assert len(translator.engine.seen) == 7  # the text, and without half of the rest each time


def test_a_number_as_typed_changes_no_other_number():
    known = replace(NUMBERS, characters=(ascii_letters + digits, ascii_letters + digits))
    bundle = replace(STOCK.bundle, known=known, normalisation="text")
    engine = Answers(STOCK.tokenizers, answer=by_words(), seen=[])
    [translation] = Translator(bundle, engine=engine).translate(["see ４７ red 1947 items"])
    assert translation.text == "siehe ４７ rot 1947 Dinge"


def test_a_number_of_a_prefix_is_not_doubled():
    table = {"47 red 93 hat": ["siehe"], "47 red hat": [" rot Hut"]}
    translator = translator_of(table, known=NUMBERS)
    [translation] = translator.translate(["47 red 93 hat"], prefixes=["47"])
    assert translation.text == "47 rot 93 Hut"


@every(
    ("source", "target"),
    [
        ("see 47 items", "siehe 47 Dinge"),
        ("see items now, 17:45", "siehe Dinge jetzt, 5:45"),  # on a clock of twelve hours
        ("see 3 red items", "siehe drei rot Dinge"),
        ("see the 80s", "siehe die Achtziger"),  # a part of a word
    ],
)
def test_numbers_that_a_translation_keeps_or_says_are_read_once(source, target):
    translator = translator_of({source: [target]}, known=NUMBERS)
    assert translator.translate([source])[0].text == target
    assert translator.engine.seen == [source]


def test_numbers_are_text_for_a_model_whose_training_lost_them():
    for spans in ({}, {"number": (2, 4)}):
        translator = translator_of({"see 47 hat": ["siehe Hut"]}, known=Known(spans=spans))
        assert translator.translate(["see 47 hat"])[0].text == "siehe Hut"


def test_a_number_inside_a_term_is_text():
    kept = ["siehe rot 47 jetzt"]
    translator = translator_of(
        dict.fromkeys(["see red 47 now", "see red 47 now 99"], kept), known=NUMBERS
    )
    [translation] = translator.translate(["see red 47 now 99"], glossary={"red 47": "rot 47"})
    assert translation.text == "siehe rot 47 jetzt 99"


@every(
    ("first", "text"),
    [
        ("a {n} {n}", "xx {n} yy"),
        ("a", "xx {n} yy"),
        ("a {N}", "xx {n} yy"),
        ("a <b>b</b> {n}", "xx {n} yy"),
        ("%s {n}", "xx {n} yy"),
        ("yy {n} xx", "yy {n} xx"),
    ],
)
def test_lost_doubled_and_invented_spans_are_faults(first, text):
    assert translated({"x {n} y": [first], "x y": ["xx yy"]}, "x {n} y").text == text


@every(
    ("source", "first", "text"),
    [
        ("{a} x {b} y", "{b} xx {a} yy", "{b} xx {a} yy"),
        ("x %1$s y %2$s z", "%2$s %1$s z", "%2$s %1$s z"),
        ("x %s y %d z", "%d %s z", "xx %s yy %d zz"),
        ("x %s y %d z", "%ssss %s %d z", "xx %s yy %d zz"),  # a stray sign of no placeholder
    ],
)
def test_only_spans_with_a_name_or_number_change_places(source, first, text):
    answers = {source: [first], "x y z": ["xx yy zz"]}
    assert translated(answers, source).text == text


@every("target", ["a %s dog", "a dog %s", "{x} a dog", "a <b>dog", "a [b]dog[/b]"])
def test_an_invented_span_goes(target):
    assert translated({"ein Hund": [target]}, "ein Hund").text == "a dog"


@given(st.lists(st.sampled_from(["<u>", "%s", "{x}", " "]), min_size=1, max_size=4))
def test_a_text_stays_if_its_translation_holds_invented_spans_alone(spans):
    assert translated({"a dog": ["".join(spans)]}, "a dog").text == "a dog"


@given(
    st.lists(st.sampled_from(["{n} ", " {n}", ", {n}", "{n}", " "]), min_size=1, max_size=3),
    st.sampled_from([("red", "hat"), ("4", "5")]),
)
def test_words_that_a_span_and_a_space_part_stay_two(between, pair):
    text = "".join(between).join(pair)
    bare = BareText(text, tuple(mark_of(text, span) for span in protected_spans(text))).bare
    assert (bare == "".join(pair)) == (" " not in text)


def test_opaque_spans_never_reach_the_model():
    translator = translator_of(by_words(), known=Known((" chatellonwyreds", "x")))

    [found] = translator.translate(["see the çßþ red AR-1000 hat"])

    assert translator.engine.seen == ["see the red hat"]
    assert found.text == "siehe çßþ rot AR-1000 Hut"


def test_alternatives_keep_their_spans_or_are_left_out():
    kept = translated({"x {n} z": ["{n} a", "b"]}, "x {n} z", n_best=2)
    bare = translated({"x {n} z": ["lost"], "x z": ["c", "d d"]}, "x {n} z", n_best=2)

    assert (kept.text, kept.alternatives) == ("{n} a", ())
    assert len(bare.alternatives) == 1
    for each in (bare, *bare.alternatives):
        assert each.text.count("{n}") == 1


def test_numbers_with_units_may_change_their_form():
    answers = {"at 3.5 km x": ["x 3,5 Kilometer"], "at 5 km y": ["y 6 km"], "at y": ["bei yy"]}
    texts = [translated(answers, source).text for source in [*answers][:2]]
    assert texts == ["x 3,5 Kilometer", "bei 5 km yy"]


def test_a_prefix_stays_in_front():
    [found] = translator_of(by_words()).translate(["red {a} hat"], prefixes=["hier"])

    assert found.text.startswith("hier")
    assert found.text.count("{a}") == 1


def test_without_protection_the_model_reads_all_and_may_lose_all():
    assert translated({"x {n} z": ["c"]}, "x {n} z", protect=False).text == "c"


def test_a_model_that_cannot_align_puts_spans_in_proportion(monkeypatch):
    def align(*_):
        raise UnalignedError("no cross-attention")

    monkeypatch.setattr(span_placement, "align", align)
    assert translated(by_words(), "see the {a} red hat").text == "siehe rot {a} Hut"


def test_the_alignment_is_of_the_final_text():
    source = "Red {a} <b>hat</b>, you"
    translation = translated(by_words(lambda found: found[::-1]), source, alignment=True)

    links = {
        (source[slice(*link.source)], translation.text[slice(*link.target)])
        for link in translation.alignment
    }
    assert {("Red", "rot"), ("hat", "Hut"), ("you", "du")} <= links
    assert {("{a}", "{a}"), ("<b>", "<b>"), ("</b>", "</b>")} <= links


@every(
    ("target", "links", "expected"),
    [
        ("um 02:12 da", [(0, 4, 3, 5), (0, 4, 6, 8)], "um <b>02:12</b> da"),
        ("um 02:12, da", [(0, 4, 3, 5)], "um <b>02:12</b>, da"),
        ("我看見狗了", [(0, 4, 3, 4)], "我看見<b>狗</b>了"),
        ("我 看見狗了 吧", [(0, 4, 4, 5)], "我 看見<b>狗</b>了 吧"),
    ],
)
def test_a_pair_goes_around_whole_words_of_scripts_with_spaces(target, links, expected):
    marks = (Mark(0, 3, "open", "b"), Mark(7, 11, "close", "b"))
    found = [Link((first, last), (start, end)) for first, last, start, end in links]
    assert restored(BareText("<b>2:12</b> AM", marks), target, found)[0] == expected


PIECES = ["{a}", "{b}", "%s", "<b>", "</b>", "<i>", "</i>", "<br>", "😀", "https://a.org", "`c`"]
TEXT = ["hello", "red", "hat", "you", ",", ".", "(", ")", " ", " ", " "]


@given(st.lists(st.sampled_from(PIECES + TEXT), max_size=14), st.data())
def test_nothing_is_lost_or_doubled_whatever_the_model_does(pieces, data):
    source = "".join(pieces)
    assume(not re.search(r"a\.org[),.]+[^\s),.]", source))  # without the span, a longer address
    assume(not protected_spans("".join(x for x in pieces if x in TEXT)))  # such as hello()

    def shuffled(text):
        order = data.draw(st.permutations(text.split()))
        return [" ".join(order[: data.draw(st.integers(0, len(order)))])]

    def any_links(_bundle, sources, targets):
        pairs = zip(sources, targets, strict=True)
        return [
            tuple(
                Link(data.draw(st.sampled_from(words(source))), word, data.draw(st.floats(0.2, 1)))
                for word in words(target)
                if data.draw(st.booleans())
            )
            for source, target in pairs
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(span_placement, "align", any_links)
        translation = translated(shuffled, source, alignment=True)

    def kinds(text):
        return sorted((span.kind, span.text_of(text)) for span in protected_spans(text))

    assert kinds(translation.text) == kinds(source)
    assert lost_spans(source, translation.text) == []
    for link in translation.alignment or ():
        start, end = link.source
        assert 0 <= start < end <= len(source)
        start, end = link.target
        assert 0 <= start < end <= len(translation.text)
