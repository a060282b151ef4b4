"""Cuts people's texts into the segments that a model reads, and joins the translations.

A model reads units of the kind that it has learnt from, mostly single normalised sentences. The
preprocessing cuts a text at line ends and, if the model has learnt from single sentences, at
sentence ends. It normalises each segment and keeps the segment's place. The text between two
segments also stands between their translations. Such a text is white space, a list's bullet or
number, the bars of a table, lines without letters, or signs at the edges of a segment that the
model has not learnt (:mod:`~glassformer.data.edges`).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from glassformer.data.accelerators import key_place
from glassformer.data.bare_text import BareText, Mark
from glassformer.data.capitals import in_known_case
from glassformer.data.edges import Edges
from glassformer.data.known import Known
from glassformer.data.normaliser import Normalisation, Normalised, with_places
from glassformer.data.protected import ProtectedSpan, mark_of
from glassformer.data.splitting import has_ordinals, sentence_spans, split_long
from glassformer.data.terms import NO_TERMS, Terms
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import (
    ALPHA,
    Span,
    has_letters,
    is_unspaced,
    knows_no_word,
    replaced,
    torn_words,
)

__all__ = [
    "LONGEST_SOURCE",
    "SINGLE_SENTENCES",
    "Preprocessing",
    "Segment",
    "SourceLengths",
    "joined",
]

# The preprocessing cuts a source with more subwords, at sentence ends if the source has some.
# Models learn from shorter sources.
LONGEST_SOURCE = 200

_LINE = re.compile(r"[^\r\n\v\f\x85\u2028\u2029]+")
# Tabs, runs of spaces or of another sign, and the signs between two quotations of CSV part cells.
_GAP = (
    r"\t| {3}|([^\w\s.])\1{3}|(?<=\s)([^\w\s.])\2\2(?=\s)|_{4}|\.{4}|(?: \.){4}"
    r"|\|\||[,;](?:(?<=\"[,;])(?=[\"\w])|(?<=\w[,;])(?=\"\w))"
)
# Codes of terminals, tags of blocks, and escapes of strings and subtitles part cells as tabs do.
_CODE = re.compile(
    r"\x1b\[[\d;]{0,40}[A-Za-z]|(?<![A-Z]:)\\(?:[nrtNh](?![a-z])|u[\dA-Fa-f]{4})"
    r"|(?<=[\w.!?])<br ?/?>(?=\w)"
    r"|</?(?:p|div|li|[uod]l|d[dt]|t[dhr]|h[1-6]|title|summary|option)(?:\s[^<>]{0,200})?>"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_ONE_LETTER = re.compile(rf"\W*{ALPHA}\W*")
# The mark of a list, quotation, heading or check box at the beginning of a line.
_MARK = re.compile(
    r"\s*(?:[-–—*+•‣◦▪·☐☑☒]|>+|#{1,6}|\[[ xX]?\]|\(?(?:\d{1,3}\.?|[A-Za-z]|[ivx]{1,5})\)"
    r"|(?P<number>\d{1,3}\.))(?:\s+|\Z|(?<=\))(?=\())"
)
_SENTENCE = re.compile(r"\S+(?:\s\S+){2,}[.!?…:;]['\"”’»)]*\s*")
_ROW = re.compile(r"\s*\|.*\|\s*")  # of a table in Markdown
_ROW_CELL = re.compile(r"[^|\t]+")
_SEVERAL = 0.2  # a model learns several sentences from this share of sources with several
_LETTERLESS = 0.05  # a model learns to translate numbers from this share of such sources
_USUAL = Known()  # the knowledge of a model that nobody has counted


@dataclass(frozen=True)
class SourceLengths:
    """Percentiles and shares of the sources that a model has learnt from.

    Lengths are in characters.
    """

    median: int
    longest: int
    """The 99th percentile."""
    several: float
    """The share of sources with several sentences."""
    letterless: float = 0.0
    """The share of sources without a letter, such as "3/15/2002"."""

    @property
    def has_several(self) -> bool:
        """Whether a model can learn several sentences at once from the share ``several``."""
        return self.several >= _SEVERAL

    @classmethod
    def of(cls, sources: Sequence[str], language: str | None) -> "SourceLengths":
        """The lengths of a sample of one or more sources.

        >>> SourceLengths.of(["A dog.", "A cat. A dog.", "A man runs."] * 2, "en")
        SourceLengths(median=11, longest=13, several=0.3333, letterless=0.0)
        """
        lengths = sorted(map(len, sources))
        several = sum(len(list(sentence_spans(source, language))) > 1 for source in sources)
        last = len(lengths) - 1
        return cls(
            lengths[last // 2],
            lengths[round(0.99 * last)],
            round(several / len(lengths), 4),
            round(sum(not has_letters(source) for source in sources) / len(lengths), 4),
        )


SINGLE_SENTENCES = SourceLengths(median=100, longest=400, several=0.0)
"""The lengths for an imported model, whose training text is not at hand: single sentences. The
percentiles are a guess, on which no translation depends."""


@dataclass(frozen=True)
class Segment:
    """A unit of translation: its text as the model reads it, and its ids.

    ``places`` has the position of each character in the original text, and the position after it.
    ``capitals`` is True if the model reads in lower case a text that somebody typed in capitals.
    ``marked`` is the whole unit with its protected spans, if it has any. The model reads the whole
    unit, or the unit without the spans; ``places`` are of the whole unit. The unit lacks the sign
    of an ``accelerator``, as in "Cu_t", which has the sign and the letter.
    """

    text: str
    places: Sequence[int]
    ids: list[int]
    capitals: bool = False
    marked: BareText | None = None
    accelerator: str = ""

    @property
    def span(self) -> Span:
        """The span of the segment in the original text."""
        return self.places[0], self.places[-1]

    @property
    def whole(self) -> str:
        """The text with its protected spans."""
        return self.marked.text if self.marked else self.text

    @property
    def is_bare(self) -> bool:
        """Whether the model reads the text without its protected spans."""
        return self.marked is not None and self.text == self.marked.bare

    def bare(self, tokenizer: Tokenizer) -> "Segment":
        """The same segment without its protected spans."""
        text = self.marked.bare if self.marked else self.text
        return replace(self, text=text, ids=tokenizer.encode(text))


@dataclass(frozen=True)
class Preprocessing:
    """The rules by which a bundle cuts texts into segments, and brings them into one form.

    ``lengths`` is None if nobody has measured the sources of the training. Then only line ends and
    the limit of subwords separate segments. Without ``known``, all signs at the edges are text.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["A dog runs.", "A cat sleeps."] * 3, vocab_size=300)
    >>> known = Known.of_tokenizers(tokenizer, tokenizer)
    >>> preprocessing = Preprocessing("text", ("en", "de"), SourceLengths(10, 20, 0.0), known)
    >>> [segments] = preprocessing.segments([" A  dog.  A CAT.\\n- A dog "], tokenizer, limit=200)
    >>> [(segment.text, segment.span) for segment in segments]
    [('A dog.', (1, 8)), ('A cat.', (10, 16)), ('A dog', (19, 24))]
    """

    normalisation: Normalisation = "none"
    languages: tuple[str, str] | None = None
    lengths: SourceLengths | None = None
    known: Known | None = None

    def segments(
        self,
        texts: Sequence[str],
        tokenizer: Tokenizer,
        *,
        limit: int,
        split: bool = True,
        protect: bool = False,
        terms: Terms = NO_TERMS,
    ) -> list[list[Segment]]:
        """The segments of each text, each with at most ``limit`` subwords.

        A line without letters has no segment, unless the model has learnt from such lines. Without
        ``split``, sentence ends separate segments only in a line of more than ``limit`` subwords.
        With ``protect``, the segments know their protected spans. No span holds one of ``terms``.
        """
        cutter = _Cutter(self, tokenizer, limit, protect, terms)
        units = [list(self._units(text, cutter, split)) for text in texts]
        ids = iter(tokenizer.encode_batch([unit.text for row in units for unit in row]))
        return [
            [segment for unit in row for segment in cutter.within(unit, next(ids))] for row in units
        ]

    def _units(self, text: str, cutter: "_Cutter", split: bool) -> Iterator[Segment]:
        """The segments of a text, without ids and without a limit of length."""
        for line in self._lines(text, split):
            whole = [(0, len(line.text))]
            for start, end in self._parts(line.text) if split and self.lengths else whole:
                yield from cutter.unit(line, start, end)

    def patterns(self) -> dict[str, object] | None:
        """The patterns by which a page cuts lines too; None if only line ends cut."""
        if self.known is None or self.lengths is None:
            return None
        patterns = {"row": _ROW, "rowCell": _ROW_CELL, "cell": self._cell}
        patterns |= {"code": _CODE, "mark": _MARK, "sentence": _SENTENCE, "oneLetter": _ONE_LETTER}
        return self.known.patterns() | {name: each.pattern for name, each in patterns.items()}

    @property
    def reads_numbers(self) -> bool:
        """Whether the model translates a line without letters; if not, the line stays."""
        return bool(self.lengths and self.lengths.letterless >= _LETTERLESS)

    @cached_property
    def _cell(self) -> re.Pattern[str]:
        """The pattern of the parts of a line between gaps and signs that part texts."""
        edges = self.known.edges if self.known else Edges()
        return re.compile(rf"(?:(?!{_GAP}|{edges.parting})[^\r\n])+")

    @cached_property
    def _colon(self) -> re.Pattern[str]:
        return re.compile(self.known.edges.colon if self.known else "(?!)")

    def _lines(self, text: str, split: bool) -> Iterator[Normalised]:
        """The lines of a text, or the cells of a table's lines."""
        parted = _CODE.sub(lambda code: "\t" * len(code[0]), text) if split else text
        for match in _LINE.finditer(parted):
            cell = _ROW_CELL if _ROW.fullmatch(match.group()) else self._cell
            cell = cell if split and self.lengths else _LINE
            for each in cell.finditer(parted, *match.span()):
                first = each.start()
                line = Normalised(each.group(), range(first, each.end() + 1))
                if self.normalisation == "text":
                    form = with_places(line.text)
                    line = Normalised(form.text, [first + place for place in form.places])
                    line = self.known.with_twins(line) if self.known else line
                yield line

    def _mark(self, line: str) -> int:
        """The length of the marks at the beginning of a line, such as "> " and "1. ".

        If "4." may mean fourth, a number is a mark only before a whole sentence, unlike "4. März".
        """
        end = 0
        while mark := _MARK.match(line, end):
            doubtful = mark["number"] and has_ordinals(self.languages and self.languages[0])
            if doubtful and not _SENTENCE.fullmatch(line, mark.end()):
                break
            end = mark.end()
        return end

    def _parts(self, line: str) -> Iterator[Span]:
        """The spans of a line that the model translates one by one."""
        start = 0
        for end in [*self._colons(line), len(line)]:
            yield from self._between_colons(line, start, end)
            start = end

    def _colons(self, line: str) -> list[int]:
        """The places behind the colons that the model has not learnt, but for protected spans."""
        places = [colon.end() for colon in self._colon.finditer(line)]
        spans = self.known.spans_in(line) if self.known and places else []
        ends = [(span, span.end + (span.kind != "unknown")) for span in spans]  # such as :tada:
        inside = {place for span, end in ends for place in range(span.start + 1, end)}
        return [place for place in places if place not in inside]

    def _between_colons(self, line: str, start: int, end: int) -> Iterator[Span]:
        """The spans of a part of a line, after its marks, such as "1. ".

        If pairs of signs, such as brackets, hold all words, and these are several sentences or
        have marks of their own, the spans lie inside the pairs.
        """
        start += self._mark(line[start:end])
        inside = self.known.contents(line[start:end]) if self.known else []
        places = [(start + first, start + last) for first, last in inside]
        begins = [first + self._mark(line[first:last]) for first, last in places]
        ends = [last for _, last in places]
        inner = [x for span in zip(begins, ends, strict=True) for x in self._sentences(line, *span)]
        if len(inner) > 1 or begins != [first for first, _ in places]:
            yield from inner
        else:
            yield from self._sentences(line, start, end)

    def _sentences(self, line: str, start: int, end: int) -> Iterator[Span]:
        """Spans of one sentence, or of several of at most ``lengths.longest`` characters.

        No sentence ends inside a protected span, such as code.
        """
        together = self.lengths.longest if self.lengths and self.lengths.has_several else 0
        first = last = start
        language = self.languages[0] if self.languages else None
        text = line[start:end]
        sentences = list(sentence_spans(text, language))
        spans = self.known.spans_in(text) if self.known and len(sentences) > 1 else []
        inside = {place for span in spans for place in range(span.start + 1, span.end)}
        for place, stop in sentences:
            cut = start + place
            if cut > first and start + stop - first > together and place not in inside:
                yield first, cut
                first = cut
            last = start + stop
        if last > first:
            yield first, last


@dataclass(frozen=True)
class _Cutter:
    """Makes segments of parts of lines; a segment has at most ``limit`` subwords."""

    preprocessing: Preprocessing
    tokenizer: Tokenizer
    limit: int
    protect: bool
    terms: Terms

    def unit(self, line: Normalised, start: int, end: int) -> Iterator[Segment]:
        """The segment of a part of a line, without layout; none if all is layout."""
        part = line.text[start:end]
        text = part.strip()
        start += part.index(text)
        places = line.places[start : start + len(text) + 1]
        known, accelerator = self.preprocessing.known, ""
        key = key_place(text, self.tokenizer) if self.protect else None
        if key is not None:
            accelerator, text = text[key : key + 2], text[:key] + text[key + 1 :]
            places = [*places[:key], *places[key + 1 :]]
        signs = self._signs(text)
        spans = {x: way for x in signs if (way := (known or _USUAL).reads(text, x)) != "text"}
        first, last = 0, len(text)
        if known and self.preprocessing.lengths and text:
            numbers = self.preprocessing.reads_numbers
            first, last = known.edges.span(text, signs, numbers=numbers)
        inside = [x for x in spans if self.protect and first <= x.start and x.end <= last]
        marks = tuple(mark_of(text, span, first) for span in inside)
        read, capitals = self._read(text[first:last], marks)
        marked = BareText(read, marks) if marks else None
        bare = marked.bare if marked else read
        reads_numbers = self.preprocessing.reads_numbers and (known or _USUAL).reads_number(bare)
        if bare.strip() and (reads_numbers or has_letters(bare)) and not self._is_unknown(bare):
            places = places[first : last + 1]
            accelerator = accelerator if key and first < key < last else ""
            opaque = any(spans[span] == "opaque" for span in inside)
            yield Segment(bare if opaque else read, places, [], capitals, marked, accelerator)

    def _signs(self, text: str) -> list[ProtectedSpan]:
        """The spans of a text that the model does not read as text; a glossary's terms are text."""
        known = self.preprocessing.known or _USUAL
        spans = known.signs_in(text)
        torn = []
        if self.protect and known.letters is not None:
            torn = torn_words(self.tokenizer, self._read(text, ())[0], known.letters)
        starts, ends = [span.start for span in spans], [span.end for span in spans]
        for start, end in reversed(torn):  # a word takes the place of spans inside it
            meeting = slice(bisect_right(ends, start), bisect_left(starts, end))
            if all(start <= span.start and span.end <= end for span in spans[meeting]):
                spans[meeting] = [ProtectedSpan("unknown", start, end)]
        if spans and self.terms.entries:
            named = {place for term, *_ in self.terms.places_in(text) for place in range(*term)}
            spans = [span for span in spans if named.isdisjoint(range(span.start, span.end))]
        return spans

    def _is_unknown(self, text: str) -> bool:
        """Whether a text of unknown words, or of one letter, stays, as no term stands in it."""
        known = self.preprocessing.known
        if not (self.protect and known and known.letters is not None):
            return False
        unknown = knows_no_word(self.tokenizer, text) or _ONE_LETTER.fullmatch(text)
        return bool(unknown) and not self.terms.places_in(text)

    def within(self, unit: Segment, ids: list[int]) -> Iterator[Segment]:
        """The unit with its ids, or several segments if the ids are more than ``limit``."""
        if len(ids) <= self.limit:
            yield replace(unit, ids=ids)
            return
        line, start, encode = Normalised(unit.whole, unit.places), 0, self.tokenizer.encode
        for part in split_long(unit.whole, lambda text: len(encode(text)), limit=self.limit):
            for piece in self.unit(line, start, start + len(part)):
                yield replace(piece, ids=encode(piece.text), capitals=unit.capitals)
            start += len(part)

    def _read(self, text: str, marks: Sequence[Mark]) -> tuple[str, bool]:
        """The text in the case that the model knows, but for marks; whether it is in capitals."""
        if self.preprocessing.normalisation == "none":
            return text, False
        lowered = text[:1] + text[1:].lower()
        capitals = text.isupper() and len(lowered) == len(text) and len(_WORD.findall(text)) > 1
        if capitals:  # a model of dates knows "9:00 AM – 5:00 PM"
            typed, known = self.tokenizer.encode_batch([text, lowered])
            capitals = len(known) < len(typed)
        read = in_known_case(lowered if capitals else text, self.tokenizer)
        spans = [(mark.start, mark.end) for mark in marks]
        return replaced(read, [(span, text[slice(*span)]) for span in spans]), capitals


def joined(
    text: str, segments: Sequence[Segment], translations: Iterable[str], *, language: str | None
) -> tuple[str, list[Span]]:
    """Join the translations of the segments of ``text``; also return each translation's span.

    The white space and the bullets of the text stand around the translations. A space separates
    two sentences, unless ``language`` writes no spaces.

    >>> segments = [Segment("Ja.", range(1, 5), []), Segment("Nein.", range(5, 11), [])]
    >>> joined(" Ja. Nein.\\n", segments, ["Yes.", "No."], language="en")
    (' Yes. No.\\n', [(1, 5), (6, 9)])
    """
    pieces: list[str] = []
    spans: list[Span] = []
    end = length = 0
    for segment, translation in zip(segments, translations, strict=True):
        gap = text[end : segment.span[0]]
        if pieces and gap in ("", " "):
            gap = "" if is_unspaced(language) else " "
        length += len(gap)
        pieces += [gap, translation]
        spans.append((length, length + len(translation)))
        length += len(translation)
        end = segment.span[1]
    return "".join([*pieces, text[end:]]), spans
