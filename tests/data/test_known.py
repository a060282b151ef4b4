"""Counts of a training: characters, edges and kinds of spans, without any word of its text."""

import json
import re
from dataclasses import asdict

from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.data.corpus import Pair
from glassformer.data.known import Known
from glassformer.data.normaliser import Normalised
from glassformer.data.preprocessing import Preprocessing, SourceLengths
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.terms import Terms
from tests.tables import every

PAIRS = [Pair("The film begins at 20 h in {n}.", "Der Film beginnt um 20 Uhr in {n}.")] * 5
PAIRS += [Pair("It is 5 km to [1].", "Es sind 5 km bis [1].")] * 5
KNOWN = Known.of(PAIRS)
WORDS = ["film", "20 h", "é", "*", "%1", "{n}", "AR-1000", "5 km", "漢字", "¶", "**it**", "x²", "_"]


def readings(known, text):
    return [known.reads(text, span) for span in known.spans_in(text)]


@every(
    ("text", "reading"),
    [
        ("20 h", "text"),
        ("5 km", "copied"),
        ("{n}", "copied"),
        ("[1]", "copied"),
        ("5 kg", "opaque"),  # the training had no such number
        ("5 t", "opaque"),
        ("%1", "opaque"),
        ("AR-1000", "opaque"),
        ("ç", "opaque"),
        ("¶", "opaque"),
    ],
)
def test_a_span_is_read_as_the_training_reads_it(text, reading):
    assert readings(KNOWN, text) == [reading]


def test_a_span_is_translated_only_where_the_targets_do_not_keep_it():
    kept = Known.of([Pair("At 20 h.", "A las 20 h.")] * 5)
    assert readings(kept, "20 h") == ["copied"]
    assert readings(kept.plus(Known.of([Pair("At 20 h.", "Um 20 Uhr.")] * 9)), "20 h") == ["text"]


def test_a_child_knows_the_characters_and_edges_of_its_parent():
    child = Known.of([Pair("¿çé?", "ß")] * 5)

    both = child.plus(KNOWN)

    assert {*"¿çéf"} <= {*both.characters[0]}
    assert both.edges.starts == ("", "¿")
    assert child.plus(Known()) == child


def test_a_character_of_few_pairs_is_unknown():
    pairs = [Pair("a dog", "ein Hund")] * 500 + [Pair("é", "é")] * 4
    assert [span.kind for span in Known.of(pairs).spans_in("a dog é")] == ["unknown"]
    assert Known.of([*pairs, Pair("é", "é")]).spans_in("a dog é") == []


def test_the_counts_hold_no_words():
    stored = json.dumps(asdict(KNOWN), ensure_ascii=False)
    assert not re.findall("film|begin|Uhr", stored)


@every(
    ("typed", "read"),
    [
        ("t\u2010t", "t-t"),
        ("ﬁlm 𝐟𝐢𝐥𝐦", "film film"),
        ("ｆｉｌｍ ２０", "film 20"),
        ("1º ²", "1º ²"),
        ("film’s", "film's"),
    ],
)
def test_forms_of_known_characters_are_read_as_these(typed, read):
    known = Known.of([Pair("film - 20's", "x")])
    line = known.with_twins(Normalised(typed, range(len(typed) + 1)))
    assert line.text == read
    assert len(line.places) == len(read) + 1


@given(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), st.booleans())
def test_a_segment_cut_again_is_the_same_segment(text, protect):
    tokenizer = train_tokenizer([pair.source for pair in PAIRS], vocab_size=300)
    lengths = SourceLengths.of([pair.source for pair in PAIRS], "en")
    cut = Preprocessing("text", ("en", "de"), lengths, KNOWN).segments

    [row] = cut([text], tokenizer, limit=99, protect=protect)

    for segment in row:
        again = cut([text[slice(*segment.span)]], tokenizer, limit=99, protect=protect, split=False)
        assert [[each.text for each in found] for found in again] == [[segment.text]]


def test_a_child_of_a_bundle_without_counts_keeps_the_usual_edges():
    tokenizer = train_tokenizer(["A man runs."] * 3, vocab_size=300)
    child = Known.of([Pair("€ A man", "€ Ein Mann")] * 9)
    both = child.plus(Known.of_tokenizers(tokenizer, tokenizer))
    assert both.edges.span("A man runs.", []) == (0, 11)
    assert both.edges.span("€ A man", []) == (0, 7)
    assert both.edges.span("× A man", []) == (2, 7)


def test_each_entity_is_a_kind_of_its_own():
    known = Known.of([Pair("a &amp; b", "a und b")] * 9)
    assert [
        known.reads(text, span) for text in ("&amp;", "&nbsp;") for span in known.spans_in(text)
    ] == ["text", "opaque"]


@every("text", ["-5 °C", "-3.5 GHz", "−40 °F"])
def test_a_minus_belongs_to_its_number(text):
    assert KNOWN.edges.span(text, KNOWN.spans_in(text)) == (0, len(text))


@every("text", ["{n}", "%s", "<b>"])
def test_code_is_never_text_however_few_targets_keep_it(text):
    assert readings(Known.of([Pair(f"a {text} b", "c")] * 9), text) == ["opaque"]


@every(("text", "is_read"), [("3/15/2002", True), ("$5", True), ("5", False), ("5 – 7", False)])
def test_a_text_of_numbers_is_read_if_the_training_had_its_shape(text, is_read):
    known = Known.of([Pair("1/20/98", "20.1.98"), Pair("$12", "12 $")] * 9)
    assert known.reads_number(text) is is_read
    assert Known().reads_number(text)


@every(
    ("text", "spans"),
    [
        ("CO₂", ["CO₂"]),
        ("H₂O", ["H₂O"]),
        ("film²", ["²"]),
        ("film漢字film", ["漢字"]),
    ],
)
def test_small_digits_of_formulas_belong_to_their_word(text, spans):
    known = Known.of([Pair("The film on COH", "x")] * 9)
    assert [span.text_of(text) for span in known.spans_in(text)] == spans


def test_chinese_beside_digits_is_no_identifier():
    known = Known.of([Pair("今天是2026年3月4日", "Heute ist der 4. März 2026")] * 9)
    assert known.spans_in("今天是2062年4月3日") == []
    rare = known.spans_in("今天是鑫2062年")  # one unknown character leaves its neighbours
    assert [(each.kind, each.start, each.end) for each in rare] == [("unknown", 3, 4)]
    assert [(each.kind, each.start) for each in known.spans_in("今天是AK70")] == [("identifier", 3)]


def test_an_amount_is_no_placeholder_where_the_training_has_money():
    assert readings(Known.of([Pair("for $5", "für $5")] * 9), "$7") == ["text"]


TAUGHT = ["The old dogs run.", "A cat is on the street", "The film begins."] * 20
TORN = st.text("bcfgmBCFGM", min_size=2, max_size=7)


def cut(text, *, protect=True, glossary=(), taught=TAUGHT):
    """The texts that a model of the taught sentences reads."""
    tokenizer = train_tokenizer(TAUGHT, vocab_size=330)
    known = Known.of([Pair(text, text) for text in taught]).with_words(tokenizer, taught)
    lengths = SourceLengths.of(taught, "en")
    preprocessing = Preprocessing("text", ("en", "de"), lengths, known)
    terms = Terms.of(dict.fromkeys(glossary, "x"))
    [row] = preprocessing.segments([text], tokenizer, limit=99, protect=protect, terms=terms)
    return [segment.text for segment in row]


@given(word=TORN, other=TORN, sign=st.sampled_from("-/&="))
@settings(max_examples=20)
def test_a_word_in_letters_is_no_text(word, other, sign):
    joined = f"{word}{sign}{other}"
    assert cut(f"{word}: The old {joined} dogs run {joined}.") == ["The old dogs run"]
    assert cut(f"{word} {joined}.") == []
    assert cut(word, glossary=[word]) == [word]
    assert word in cut(f"The old {word} dogs run.", glossary=[word])[0]
    assert cut(f"The {word} {word}.", protect=False)[0].startswith("The ")


def test_known_words_in_any_case_are_text():
    for text in ("THE OLD DOGS RUN.", "Dogs run.", "A Cat Is On The Street", "the films begin"):
        assert cut(text)[0].lower() == text.lower()


def test_a_model_whose_own_words_are_in_letters_reads_all_words():
    taught = TAUGHT + ["zqx vkj"] * 9
    assert cut("The zqx run.", taught=taught) == ["The zqx run."]


@given(letter=st.sampled_from("cdfgl"), form=st.sampled_from(["{}", "{}.{}.", "{}-{}"]))
@settings(max_examples=20)
def test_a_letter_alone_is_text_if_sources_have_it(letter, form):
    word = form.format(letter, letter)
    assert cut(f"The {word} old dogs run")[0].split() == ["The", "old", "dogs", "run"]
    taught = [*TAUGHT, *[f"The {letter} old."] * 2]
    assert cut(f"The {word} old dogs run", taught=taught) == [f"The {word} old dogs run"]
    assert cut(f"A cat-{letter} run")[0] == f"A cat-{letter} run"
