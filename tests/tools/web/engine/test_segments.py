"""The page's words, normalisation, segments and alignment against Python's."""

import base64
import unicodedata
from typing import Any

import numpy as np

from glassformer.alignment.align import _merged, _shares, linked
from glassformer.data.edges import Edges
from glassformer.data.known import Known
from glassformer.data.normaliser import INVISIBLE, normalised
from glassformer.data.preprocessing import SINGLE_SENTENCES, Preprocessing, SourceLengths
from glassformer.data.protected import SPANS
from glassformer.data.splitting import BREAKS, has_ordinals, sentence_spans
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Span, has_letters, words
from glassformer.tools.web.js_patterns import js_pattern
from glassformer.tools.web.living_page import cutting, unassigned
from tests.node import node
from tests.tables import every
from tests.tools.web.engine.texts import SENTENCES, laid_out_texts, odd_texts

WORDS = """
import { Preprocessing } from "./engine/segments.js";
import { hasLetters, isSpace, words } from "./engine/words.js";

export default function ({ texts, characters, reading }) {
  const preprocessing = new Preprocessing(reading);
  const read = (text) => [words(text), hasLetters(text), preprocessing.normalised(text)];
  const kinds = (each) => [isSpace(each), hasLetters(each), words(`a${each}b'${each}c`)];
  return { texts: texts.map(read), characters: characters.map(kinds) };
}
"""
SEGMENTS = """
import { Preprocessing } from "./engine/segments.js";
import { Tokenizer } from "./engine/tokenizer.js";

export default function ({ model, texts, readings }) {
  const tokenizer = new Tokenizer(new Uint8Array(Buffer.from(model, "base64")), {});
  return readings.map((reading) => {
    const preprocessing = new Preprocessing(reading);
    const places = (text, end) => [...text.slice(0, end)].length;
    const sentences = ({ text }) => {
      const whole = text.slice(preprocessing.markOf(text));
      const sentencesOf = (line) => preprocessing.sentences(line).map((at) => line.slice(...at));
      return [whole, [...whole].slice(1, -1).join("")].map((line) => [line, sentencesOf(line)]);
    };
    return texts.map((text) => ({
      lines: preprocessing.lines(text).flatMap(sentences),
      segments: preprocessing.segments(text, tokenizer).map(({ start, end, ...segment }) => {
        const { text: read, capitals, ids } = segment;
        return { text: read, capitals, ids, span: [places(text, start), places(text, end)] };
      }),
    }));
  });
}
"""
LINKS = """
import { links } from "./engine/words.js";
export default (cases) => cases.map((each) => links(each.weights, each.source, each.target));
"""
KNOWN = {"invisible": INVISIBLE, "unknown": unassigned()}


def reading(**settings: Any) -> dict[str, Any]:
    breaks = [js_pattern(place.pattern) for place in BREAKS]
    usual = {"normalisation": KNOWN, "together": None, "numbers": False, "ordinals": False}
    usual |= {"gap": " ", "cutting": None, "spans": js_pattern(SPANS)}
    return {**usual, "longest": 10_000, "breaks": breaks, **settings}


def is_assigned(text: str) -> bool:
    """Whether Python's version of Unicode has all characters; a browser's is newer."""
    return "Cn" not in map(unicodedata.category, text)


def listed(spans: list[Span]) -> list[list[int]]:
    return [list(span) for span in spans]


def test_words_letters_and_normalised_texts():
    texts = odd_texts(3000, seed=1)
    codes = [*range(0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x12000)]
    characters = list(filter(is_assigned, map(chr, codes)))
    answer = node(WORDS, {"texts": texts, "characters": characters, "reading": reading()})
    for text, [spans, letters, form] in zip(texts, answer["texts"], strict=True):
        assert form == normalised(text), text
        if is_assigned(text):
            assert letters == has_letters(text), text
            assert spans == listed(words(text)), text
    for each, found in zip(characters, answer["characters"], strict=True):
        spans = listed(words(f"a{each}b'{each}c"))
        assert found == [each.isspace(), each.isalpha(), spans], hex(ord(each))


def test_segments_and_their_places():
    tokenizer = train_tokenizer(SENTENCES * 9, vocab_size=500)
    capitals = ["AN OLD DOG", "An Old DOG Runs Across The GRASS.", "FBI", "Ǆ SS", "ABC DE²"]
    capitals += ["STRASSE IN İZMIR", *map(str.upper, SENTENCES), *map(str.title, SENTENCES)]
    long = ["-= " * 2000 + "\u200b  a", "a" + " =-" * 2000, "-= " * 2000]  # no loop over all places
    ends = [
        *long,
        "❤️ two ❤️\u200d",
        "\u200b dogs \u2060",
        "\ufeff\n\r\n a \n b\u0301 \n",
        "12",
        " \u200b ",
        *("-20 h", "-5 °C: snow", "(-3 t) dogs", "−4 km.", "- 4 km"),
    ]
    edges = Edges(("", "$", "«", "(", "."), ("", ".", "!", " !", ".)"), "")
    letters = "".join(sorted({*"".join(SENTENCES)}))
    known = Known((letters, letters), edges, {"identifier": (1, 5)})
    together = {"several": 1.0}  # lines of several sentences are translated whole
    counted = SourceLengths(10, 9_000, **together)
    letterless = SourceLengths(10, 9_000, letterless=1.0, **together)
    odd = filter(is_assigned, (*odd_texts(1500, seed=2), *capitals, *ends))
    check_segments(
        tokenizer,
        list(odd),
        [
            Preprocessing("text"),
            Preprocessing(),
            Preprocessing("text", None, letterless, Known.of_tokenizers(tokenizer, tokenizer)),
            Preprocessing("none", ("de", "en"), counted, Known(edges=edges)),
            Preprocessing("text", ("de", "en"), counted, known),
        ],
        limit=10_000,
        share=0.9,
    )


def test_segments_of_paragraphs_lists_tables_and_long_lines():
    tokenizer = train_tokenizer(SENTENCES * 9, vocab_size=500)
    usual = Known.of_tokenizers(tokenizer, tokenizer)
    grouped = SourceLengths(40, 120, several=1.0, letterless=1.0)
    check_segments(
        tokenizer,
        laid_out_texts(100, seed=5),
        [
            Preprocessing("text", ("en", "de"), SINGLE_SENTENCES, usual),
            Preprocessing("text", ("de", "en"), grouped, usual),
            Preprocessing("none", ("fr", "en"), SINGLE_SENTENCES, usual),
            Preprocessing("text"),
        ],
        limit=30,
        share=0.9,
    )


def check_segments(
    tokenizer: Tokenizer,
    texts: list[str],
    pythons: list[Preprocessing],
    *,
    limit: int,
    share: float,
) -> None:
    """The page's segments are Python's, in texts whose sentences both cut alike.

    At least this share of the texts is compared.
    """
    model = base64.b64encode(tokenizer.serialized).decode()
    readings = [
        reading(
            normalisation=KNOWN if each.normalisation == "text" else None,
            together=each.lengths and each.lengths.has_several * each.lengths.longest,
            numbers=each.reads_numbers,
            ordinals=has_ordinals(each.languages and each.languages[0]),
            cutting=cutting(each),
            longest=limit,
        )
        for each in pythons
    ]
    given = {"model": model, "texts": texts, "readings": readings}
    for each, answers in zip(pythons, node(SEGMENTS, given), strict=True):
        language, compared = each.languages and each.languages[0], 0
        rows = each.segments(texts, tokenizer, limit=limit)
        for text, row, answer in zip(texts, rows, answers, strict=True):
            expected = [
                {"text": s.text, "capitals": s.capitals, "ids": s.ids, "span": list(s.span)}
                for s in row
            ]
            alike = all(
                [line[slice(*span)] for span in sentence_spans(line, language)] == found
                for line, found in answer["lines"]
            )
            if alike or each.lengths is None:
                assert answer["segments"] == expected, text
                compared += 1
        assert compared >= share * len(texts)


@every(
    ("line", "ordinals", "sentences"),
    [
        ("A dog runs. It is old! Is it?", False, ["A dog runs.", "It is old!", "Is it?"]),
        ("1. Dr. Ed met J. Doe. 2. He left.", False, ["1. Dr. Ed met J. Doe.", "2. He left."]),
        ("Am 4. März. Am XX. Mai.", True, ["Am 4. März.", "Am XX. Mai."]),
        ("Room 4. The dog.", False, ["Room 4.", "The dog."]),
        ('It says "Stop!" and stops.', False, ['It says "Stop!" and stops.']),
        ("One. Two.\n\nThree.", False, ["One.", "Two.", "Three."]),
    ],
)
def test_sentences_of_a_line(line, ordinals, sentences):
    tokenizer = train_tokenizer(SENTENCES, vocab_size=300)
    readings = [reading(together=0, ordinals=ordinals)]
    model = base64.b64encode(tokenizer.serialized).decode()
    [[answer]] = node(SEGMENTS, {"model": model, "texts": [line], "readings": readings})
    found = answer["segments"]
    assert [line[slice(*segment["span"])] for segment in found] == sentences
    assert [segment["text"] for segment in found] == sentences


def test_links_are_those_of_the_alignment():
    draw = np.random.default_rng(4)
    cases = []
    for _ in range(60):
        sides = []
        for _ in range(2):
            ends = np.sort(draw.choice(30, size=8, replace=False)).tolist()
            pieces = list(zip([0, *ends], [*ends, 30], strict=True))
            starts = sorted(draw.choice(27, size=4, replace=False).tolist())
            lasts = [*starts[1:], 30]
            gaps = draw.integers(3, size=4).tolist()
            spans = [(a, max(a, b - c)) for a, b, c in zip(starts, lasts, gaps, strict=True)]
            sides.append({"words": spans, "pieces": [*pieces, (30, 30)]})
        weights = draw.dirichlet(np.full(10, 0.15), size=10)
        cases.append({"weights": weights.tolist(), "source": sides[0], "target": sides[1]})
    for case, found in zip(cases, node(LINKS, cases), strict=True):
        shares = [
            _shares(side["words"], side["pieces"]) for side in (case["source"], case["target"])
        ]
        weights = _merged(np.array(case["weights"]), *shares)
        expected = np.argwhere(linked(weights))
        assert [link[:2] for link in found] == expected.tolist()
        np.testing.assert_allclose([link[2] for link in found], weights[tuple(expected.T)])
