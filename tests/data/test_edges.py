"""Signs at the edges, lines and cells: the model reads the clean texts, all else stays."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from glassformer.data.edges import Edges
from glassformer.data.known import Known
from glassformer.data.normaliser import normalised
from glassformer.data.preprocessing import Preprocessing, SourceLengths, joined
from glassformer.data.protected import protected_spans
from glassformer.data.subword_training import train_tokenizer
from tests.tables import every

CLEAN = ["A man runs.", "An old dog", "Two men (in red) sit.", 'He says "no".', "March 4, 2030"]
CLEAN += ["The dog's hat is blue.", "At 3:30 it doesn't rain."]
LENGTHS = SourceLengths.of(CLEAN * 5, "en")
PAIRS = ["()", "[]", "«»", "“”", "„“", "‚‘", "**", "__", "~~", '""', "''", "<>", "「」"]
SIGNS = [chr(code) for code in range(0x21, 0x1F700) if unicodedata.category(chr(code))[0] in "PS"]
SIGNS = [sign for sign in SIGNS if normalised(sign) and sign != "`"]  # which stand around code


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(CLEAN * 3, vocab_size=300)


@st.composite
def decorated(draw, clean):
    """A text with layout around it: its part before and its part after."""
    before = after = ""
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["pair", "signs", "leader"]))
        if kind == "pair":
            opener, closer = draw(st.sampled_from(PAIRS))
            before, after = opener + before, after + closer
        elif kind == "signs":  # with a space, so that no placeholder such as %A comes about
            before = draw(st.text(st.sampled_from(SIGNS), max_size=4)) + " " + before
            after += " " + draw(st.text(st.sampled_from(SIGNS), max_size=4))
        else:
            after += draw(st.sampled_from([" ....", " ------", "—", "…"]))
    return before, clean, after


@st.composite
def pages(draw):
    """The clean parts of a text, and the layout before, between and after them."""
    layout, parts = [""], []
    for _ in range(draw(st.integers(1, 4))):
        before, clean, after = draw(decorated(draw(st.sampled_from(CLEAN))))
        layout[-1] += before
        parts.append(clean)
        layout.append(after + draw(st.sampled_from(["\n", "\t", "    ", "\n\n=====\n", "\r\n"])))
    return layout, parts


@given(pages())
def test_the_model_reads_the_clean_texts_and_all_else_stays(tokenizer, page):
    layout, parts = page
    text = "".join(a + b for a, b in zip(layout, [*parts, ""], strict=True))
    preprocessing = Preprocessing("text", ("en", "de"), LENGTHS, Known(edges=Edges.of(CLEAN * 5)))

    [row] = preprocessing.segments([text], tokenizer, limit=1_000)
    assert [segment.text for segment in row] == parts

    whole, _ = joined(text, row, [f"<{n}>" for n in range(len(parts))], language="de")
    numbered = [f"<{n}>" for n in range(len(parts))]
    assert whole == "".join(a + b for a, b in zip(layout, [*numbered, ""], strict=True))


def test_a_run_that_several_sources_have_is_text():
    edges = Edges.of(["¿Qué?", "(¿Qué?)", "Sí!", "Sí!", '"Sí!"'] * 3)
    assert edges == Edges(("",), ("!",), "", ())
    assert Edges.of(["¿Qué?", '"¿Qué?"'] * 5) == Edges(('"¿', "¿"), ("?", '?"'), "", ())
    assert Edges.of(["a – b & c, (d) . e"] * 4 + ["a & b"]).middles == ("&",)


@given(run=st.text("★;&/·~+=※◆|→#*^–-:<>", min_size=1, max_size=3))
@example("&")
def test_a_run_between_spaces_parts_texts_unless_sources_have_it(run):
    learnt = Edges.of(CLEAN * 5 + [f"a {run} b"] * 5)
    for edges, parted in ((Edges.of(CLEAN * 5), True), (learnt, False)):
        found = re.search(edges.parting, f"A man {run} a dog{run}s {run}")
        assert (found is not None and found[0] == run) == parted


@every("sign", [*"›→■★|❤✨&–", "->"])
def test_without_counts_arrows_and_shapes_part_texts(sign):
    assert bool(re.search(Edges().parting, f"a {sign} b")) == (sign not in "❤✨&–")


@given(st.lists(st.tuples(st.sampled_from(CLEAN[:2]), st.booleans()), min_size=2, max_size=5))
def test_cells_of_csv_are_texts_of_their_own(tokenizer, cells):
    """One of two neighbours has quotation marks, which the model knows."""
    marked = [quoted or not n % 2 for n, (_, quoted) in enumerate(cells)]
    row = ",".join(
        f'"{text}"' if quoted else "dog" for (text, _), quoted in zip(cells, marked, strict=True)
    )
    preprocessing = Preprocessing("text", ("en", "de"), LENGTHS, Known(edges=Edges.of(CLEAN * 5)))
    [segments] = preprocessing.segments([row], tokenizer, limit=1_000)
    texts = [text if quoted else "dog" for (text, _), quoted in zip(cells, marked, strict=True)]
    assert [segment.text for segment in segments] == texts


@given(sign=st.sampled_from(":;"), spans=st.lists(st.sampled_from([":x1:", "&amp;", "`a: b`"])))
def test_a_colon_parts_texts_unless_sources_have_it(tokenizer, sign, spans):
    head, tail = " ".join(["A man", *spans, "sits"]), "two men"
    learnt = Edges.of(CLEAN * 5 + [f"A man{sign} a dog"] * 5)
    for edges, parts in ((Edges.of(CLEAN * 5), 2), (learnt, 1), (Edges(), 1)):
        preprocessing = Preprocessing("text", ("en", "de"), LENGTHS, Known(edges=edges))
        [row] = preprocessing.segments([f"{head}{sign} {tail}"], tokenizer, limit=1_000)
        assert [segment.text for segment in row] == (
            [head, tail] if parts == 2 else [f"{head}{sign} {tail}"]
        )


@given(pair=st.sampled_from(["()", "[]", "{}"]), start=st.booleans())
def test_unlearnt_brackets_at_an_end_hold_a_text(pair, start):
    inner, word = f"{pair[0]}a dog{pair[1]}", "A man"
    text = f"{inner} {word}" if start else f"{word} {inner}"
    characters = "".join(sorted({*"".join(CLEAN)} - {*"()"}))
    for known, parts in ((characters, {"A man", "a dog"}), (characters + pair, set())):
        contents = Known((known, known), Edges.of(CLEAN * 5)).contents(text)
        assert {text[slice(*span)].strip() for span in contents} == parts
        assert not Known((known, known)).contents(f"{word}{inner}{word}")


def test_pairs_that_hold_all_words_have_contents():
    def contents(text):
        return [text[slice(*span)] for span in Known(edges=Edges()).contents(text)]

    assert contents("AR-10 {A man} A4 (a [dog])") == ["A man", "a [dog]"]
    assert contents("“A man.” “A dog.”") == ["A man.", "A dog."]
    for text in ("(A man) runs", "a (dog)", "A man", "(", "[1]", "don't (x", "[*] 5 – 6"):
        assert contents(text) in ([], ["1"]), text


@every(
    ("text", "read"),
    [
        ("(A man) runs", "(A man) runs"),
        ("A man (and a dog)", "A man (and a dog)"),
        ("'Run' he says", "'Run' he says"),
        ("{name}s run (%s)", "{name}s run"),
        ("See: <b>https://a.org/b</b>", "See"),
        ("<b>A man</b> runs", "<b>A man</b> runs"),
        ("<b>A man runs<br></b> 👍", "A man runs"),
        ("5 km away", "5 km away"),
        ("<0>Two</0> dogs", "<0>Two</0> dogs"),
        ("a cafe\u0301", "a cafe\u0301"),
        ("[[A man] runs", "[A man] runs"),
        ("!" * 30, ""),
        ("{A man runs}", "A man runs"),
    ],
)
def test_signs_with_a_partner_and_measures_are_text(text, read):
    assert text[slice(*Edges((), (), "").span(text, protected_spans(text)))] == read


def test_without_counts_the_usual_signs_are_text():
    for text in ("¿Qué?", '"Yes."', "-5 °C", "5 %", "$5…"):
        assert Edges().span(text, []) == (0, len(text))
    assert Edges().span("[Yes]", []) == (1, 4)
