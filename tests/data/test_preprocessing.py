"""From texts to segments and back: nothing is lost, and each character is found where it stood."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.corpus import Pair
from glassformer.data.edges import Edges
from glassformer.data.known import Known
from glassformer.data.normaliser import normalised
from glassformer.data.preprocessing import Preprocessing, Segment, SourceLengths, joined
from glassformer.data.splitting import sentence_spans
from glassformer.data.subword_training import train_tokenizer
from tests.tables import every

KNOWN = Known(edges=Edges(("", "-"), ("", ".", "!", "?", "。", "！"), ""))
SINGLE = SourceLengths(median=20, longest=40, several=0.01)
SEVERAL = SourceLengths(median=20, longest=30, several=0.5)
LETTERS = st.text(st.sampled_from("aB. !?,\t\n\r\u3000\u00a0\u200be\u0301é😀。"), max_size=60)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["A dog runs.", "An old hat."] * 3, vocab_size=300)


def segments_of(text, tokenizer, *, limit=1000, split=True, **options):
    preprocessing = Preprocessing(**options, known=KNOWN if options.get("lengths") else None)
    [row] = preprocessing.segments([text], tokenizer, limit=limit, split=split)
    return row


@given(text=LETTERS, lengths=st.sampled_from([None, SINGLE, SEVERAL]), limit=st.integers(8, 40))
def test_every_segment_is_its_place_in_the_text(tokenizer, text, lengths, limit):
    row = segments_of(text, tokenizer, limit=limit, normalisation="text", lengths=lengths)

    for segment in row:
        start, end = segment.span
        assert segment.text == segment.text.strip() != ""
        assert normalised(text[start:end]).lower() == segment.text.lower()
        assert segment.ids == tokenizer.encode(segment.text)
        assert len(segment.ids) <= limit or len(segment.text) == 1
        assert len(segment.places) == len(segment.text) + 1
    spans = [segment.span for segment in row]
    assert spans == sorted(spans)
    read = "".join(segment.text for segment in row)
    assert _letters(read) == _letters(normalised(text))


def _letters(text):
    return [letter for letter in text.lower() if letter.isalpha()]


@given(text=LETTERS, lengths=st.sampled_from([None, SINGLE]))
def test_echoed_segments_are_the_text_again(tokenizer, text, lengths):
    row = segments_of(text, tokenizer, lengths=lengths)

    whole, spans = joined(text, row, [segment.text for segment in row], language=None)

    assert "".join(whole.split()) == "".join(text.split())
    assert len(whole.splitlines()) == len(text.splitlines())
    assert [whole[slice(*span)] for span in spans] == [segment.text for segment in row]
    if lengths is None:
        assert whole == text


@every(
    ("text", "sentences"),
    [
        ("A man stands. Two dogs play.", ["A man stands.", "Two dogs play."]),
        ("I met Dr. Smith in St. Louis.  He left.", ["I met Dr. Smith in St. Louis.", "He left."]),
        ("1. One. 2. Two.", ["One.", "2. Two."]),
        ("4/3/2030, 3.50 €\n42\n---", []),
        ("\n- One.\n\n\t• Two! -Three\r\n", ["One.", "Two!", "-Three"]),
        ("2) One\n (3) Two\n\tb) Three\n(iv) Four", ["One", "Two", "Three", "Four"]),
        (
            "> One\n>> Two\n## Three\n- [ ] Four\n* [x] Five",
            ["One", "Two", "Three", "Four", "Five"],
        ),
        ("> - 10. One", ["One"]),
        ("| One | 42 | Two. Three. |\n|:--|---|:-:|", ["One", "Two.", "Three."]),
        ("Is it 5|6?\n3.5 men\n(well) done", ["Is it 5|6?", "3.5 men", "(well) done"]),
        ("私は学生です。彼は先生です！", ["私は学生です。", "彼は先生です！"]),
    ],
)
def test_single_sentences(tokenizer, text, sentences):
    row = segments_of(text, tokenizer, languages=("en", "de"), lengths=SINGLE)
    assert [segment.text for segment in row] == sentences


@pytest.mark.parametrize("language", ["de", "fi", "hu_HU", None])
def test_a_number_with_a_stop_may_be_an_ordinal(tokenizer, language):
    languages = language and (language, "en")
    for text in ("4. März 2030", "2. Weltkrieg", "- 4. März"):
        [segment] = segments_of(text, tokenizer, languages=languages, lengths=SINGLE)
        assert segment.text == text.removeprefix("- ")
    row = segments_of("1. Ein Hund rennt.\n2) Ja", tokenizer, languages=languages, lengths=SINGLE)
    assert [segment.text for segment in row] == ["Ein Hund rennt.", "Ja"]


def test_a_line_without_letters_is_read_if_the_model_has_learnt_from_such_lines(tokenizer):
    numbers = SourceLengths.of(["3/15/2002", "A dog.", "$12.50"], "en")
    assert numbers.letterless == round(2 / 3, 4)
    for lengths, count in ((numbers, 1), (SINGLE, 0), (None, 0)):
        assert len(segments_of("4/3/2030", tokenizer, lengths=lengths)) == count


def test_a_bundle_of_several_sentences_reads_as_many_as_fit(tokenizer):
    text = "A dog runs. A cat. A man. " + "An old hat is on a table near a dog."
    row = segments_of(text, tokenizer, lengths=SEVERAL)
    assert [segment.text for segment in row] == [
        "A dog runs. A cat. A man.",
        "An old hat is on a table near a dog.",
    ]


def test_without_lengths_or_split_a_line_stays_whole(tokenizer):
    text = "A dog runs. A cat.\nA man."
    lines = ["A dog runs. A cat.", "A man."]
    assert [each.text for each in segments_of(text, tokenizer)] == lines
    whole = segments_of(text, tokenizer, lengths=SINGLE, split=False)
    assert [each.text for each in whole] == lines


@pytest.mark.parametrize(
    ("typed", "read", "capitals"),
    [
        ("A MAN RUNS.", "A man runs.", True),
        ("NASA", "NASA", False),
        ("A NASA man", "A NASA man", False),
        ("U.S. 2030", "U.S. 2030", False),
        ("İSTANBUL İZMİR", "İSTANBUL İZMİR", False),  # its small letters are more characters
    ],
)
def test_several_words_in_capitals_are_read_in_lower_case(tokenizer, typed, read, capitals):
    [segment] = segments_of(typed, tokenizer, normalisation="text")
    assert (segment.text, segment.capitals) == (read, capitals)
    assert segments_of(typed, tokenizer)[0].text == typed


@every(
    ("text", "language", "whole"),
    [
        (" a b ", "de", " X Y "),
        ("ab", "de", "X Y"),
        ("a b", "ja", "XY"),
        ("a\n\n\tb\r\n", "ja", "X\n\n\tY\r\n"),
        ("\ufeffa\u200b b", "de", "\ufeffX\u200b Y"),
        ("- a\n  \u2022 b", "de", "- X\n  \u2022 Y"),
    ],
)
def test_the_white_space_between_segments_stays(text, language, whole):
    first, second = text.index("a"), text.index("b")
    segments = [Segment("a", (first, first + 1), []), Segment("b", (second, second + 1), [])]
    assert joined(text, segments, ["X", "Y"], language=language)[0] == whole


def test_lengths_of_sources():
    sources = ["x" * length for length in range(1, 101)] + ["A man. A dog."]
    lengths = SourceLengths.of(sources, "en")
    assert (lengths.median, lengths.longest) == (50, 99)
    assert lengths.several == round(1 / 101, 4)


def test_the_sentences_of_a_line_are_the_line():
    line = " One.  Two?! (Three.) 4. "
    assert "".join(line[slice(*span)] for span in sentence_spans(line)) == line
    assert list(sentence_spans("")) == []


@every(
    ("text", "read"),
    [
        ("9:00 AM – 5:00 PM", ["9:00 AM – 5:00 PM"]),  # the training has these capitals
        ("THE DOG RUNS", ["The dog runs"]),
        ('"The dog runs. A cat sleeps."', ["The dog runs.", "A cat sleeps."]),
        ("the dog<br>a cat", ["the dog", "a cat"]),
        ("the dog\u2028a cat\x0cthe dog", ["the dog", "a cat", "the dog"]),
        ("the dog => a cat", ["the dog", "a cat"]),
    ],
)
def test_the_model_reads_the_texts_inside_layout(text, read):
    sources = ["The dog runs.", "A cat sleeps.", "9:00 AM – 5:00 PM", "the dog runs, a cat sleeps"]
    tokenizer = train_tokenizer(sources * 9, vocab_size=400)
    known = Known.of([Pair(source, source) for source in sources] * 9)
    lengths = SourceLengths.of(sources, "en")
    cut = Preprocessing("text", ("en", "de"), lengths, known)
    [row] = cut.segments([text], tokenizer, limit=99, protect=True)
    assert [segment.text for segment in row] == read
