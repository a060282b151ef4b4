"""Cuts people's texts into the segments that a model reads, and joins the translations.

A model reads units of the kind that it has learnt from, mostly single normalised sentences. The
preprocessing cuts a text at line ends and, if the model has learnt from single sentences, at
sentence ends. It normalises each segment and keeps the segment's place. The text between two
segments also stands between their translations. Such a text is white space, a list's bullet or
number, the bars of a table, lines without letters, or signs at the edges of a segment that the
model has not learnt (:mod:`~glassformer.data.edges`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from glassformer.data.capitals import in_known_case
from glassformer.data.edges import USUAL, Edges
from glassformer.data.normaliser import Normalisation, Normalised, visible, with_places
from glassformer.data.splitting import has_ordinals, sentence_spans, split_long
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Span, has_letters, is_unspaced, unknown_characters

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

_LINE = re.compile(r"[^\r\n]+")
# The parts of a line between tabs, runs of spaces or of another sign, and signs such as " | ".
_CELL = re.compile(
    r"(?:(?!\t| {3}|([^\w\s.])\1\1|_{3}|\.{4}| [|¦›»→←·•▸>]{1,2} |\|\||(?<=\")[,;](?=\"))[^\r\n])+"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
# The mark of a list, quotation, heading or check box at the beginning of a line.
_MARK = re.compile(
    r"\s*(?:[-–—*+•‣◦▪·☐☑☒]|>+|#{1,6}|\[[ xX]?\]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,5})\)"
    r"|(?P<number>\d{1,3}\.))\s+"
)
_SENTENCE = re.compile(r"\S+(?:\s\S+){2,}[.!?…:;]['\"”’»)]*\s*")
_ROW = re.compile(r"\s*\|.*\|\s*")  # of a table in Markdown
_ROW_CELL = re.compile(r"[^|]+")
_SEVERAL = 0.2  # a model learns several sentences from this share of sources with several
_LETTERLESS = 0.05  # a model learns to translate numbers from this share of such sources


@dataclass(frozen=True)
class SourceLengths:
    """Percentiles, shares and edges of the sources that a model has learnt from.

    Lengths are in characters.
    """

    median: int
    longest: int
    """The 99th percentile."""
    several: float
    """The share of sources with several sentences."""
    letterless: float = 0.0
    """The share of sources without a letter, such as "3/15/2002"."""
    starts: Sequence[str] | None = None
    """The signs with which sources begin; None if nobody has counted them."""
    ends: Sequence[str] | None = None
    """The signs with which sources end."""

    @property
    def has_several(self) -> bool:
        """Whether a model can learn several sentences at once from the share ``several``."""
        return self.several >= _SEVERAL

    @classmethod
    def of(cls, sources: Sequence[str], language: str | None) -> "SourceLengths":
        """The lengths and the edges of a sample of one or more sources.

        >>> lengths = SourceLengths.of(["A dog.", "A cat. A dog.", "A man runs."] * 2, "en")
        >>> lengths.median, lengths.longest, lengths.several, lengths.ends
        (11, 13, 0.3333, ('.',))
        """
        lengths, edges = sorted(map(len, sources)), Edges.of(sources)
        several = sum(len(list(sentence_spans(source, language))) > 1 for source in sources)
        last = len(lengths) - 1
        return cls(
            lengths[last // 2],
            lengths[round(0.99 * last)],
            round(several / len(lengths), 4),
            round(sum(not has_letters(source) for source in sources) / len(lengths), 4),
            starts=edges.starts,
            ends=edges.ends,
        )


SINGLE_SENTENCES = SourceLengths(median=100, longest=400, several=0.0)
"""The lengths for an imported model, whose training text is not at hand: single sentences. The
percentiles are a guess, on which no translation depends."""


@dataclass(frozen=True)
class Segment:
    """A unit of translation: its text as the model reads it, and its ids.

    ``places`` has the position of each character in the original text, and the position after it.
    ``capitals`` is True if the model reads in lower case a text that somebody typed in capitals.
    """

    text: str
    places: Sequence[int]
    ids: list[int]
    capitals: bool = False

    @property
    def span(self) -> Span:
        """The span of the segment in the original text."""
        return self.places[0], self.places[-1]


@dataclass(frozen=True)
class Preprocessing:
    """The rules by which a bundle cuts texts into segments, and brings them into one form.

    ``lengths`` is None if nobody has measured the sources of the training. Then only line ends and
    the limit of subwords separate segments.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["A dog runs.", "A cat sleeps."] * 3, vocab_size=300)
    >>> preprocessing = Preprocessing("text", ("en", "de"), SourceLengths(10, 20, 0.0))
    >>> [segments] = preprocessing.segments([" A  dog.  A CAT.\\n- A dog "], tokenizer, limit=200)
    >>> [(segment.text, segment.span) for segment in segments]
    [('A dog.', (1, 8)), ('A cat.', (10, 16)), ('A dog', (19, 24))]
    """

    normalisation: Normalisation = "none"
    languages: tuple[str, str] | None = None
    lengths: SourceLengths | None = None

    def segments(
        self, texts: Sequence[str], tokenizer: Tokenizer, *, limit: int, split: bool = True
    ) -> list[list[Segment]]:
        """The segments of each text, each with at most ``limit`` subwords.

        A line without letters has no segment, unless the model has learnt from such lines. Without
        ``split``, sentence ends separate segments only in a line of more than ``limit`` subwords.
        """
        edges = self.edges(tokenizer)
        units = [list(self._units(text, split, edges)) for text in texts]
        if self.normalisation == "text":
            read = partial(in_known_case, tokenizer=tokenizer)
            units = [[replace(unit, text=read(unit.text)) for unit in row] for row in units]
        ids = iter(tokenizer.encode_batch([unit.text for row in units for unit in row]))
        return [
            [segment for unit in row for segment in _within(unit, next(ids), tokenizer, limit)]
            for row in units
        ]

    def edges(self, tokenizer: Tokenizer) -> Edges | None:
        """The signs that the model has learnt at the edges of a text; None if all are text."""
        if self.lengths is None:
            return None
        if self.lengths.starts is not None:
            return Edges(self.lengths.starts, self.lengths.ends, "")
        unknown = unknown_characters(tokenizer, [*USUAL])
        return Edges(usual="".join(sign for sign in USUAL if sign not in unknown))

    def _units(self, text: str, split: bool, edges: Edges | None) -> Iterator[Segment]:
        """The segments of a text, without ids and without a limit of length."""
        capitals = self.normalisation == "text"
        for line in self._lines(text, split):
            for start, end in self._parts(line.text) if split else [(0, len(line.text))]:
                for unit in _unit(line, start, end, capitals=capitals, edges=edges):
                    if has_letters(unit.text) or self.reads_numbers:
                        yield unit

    def patterns(self, tokenizer: Tokenizer) -> dict[str, object] | None:
        """The patterns by which a page cuts lines too; None if only line ends cut."""
        edges = self.edges(tokenizer)
        if edges is None:
            return None
        patterns = {"row": _ROW, "rowCell": _ROW_CELL, "cell": _CELL}
        patterns |= {"mark": _MARK, "sentence": _SENTENCE}
        return edges.patterns() | {name: p.pattern for name, p in patterns.items()}

    @property
    def reads_numbers(self) -> bool:
        """Whether the model translates a line without letters; if not, the line stays."""
        return bool(self.lengths and self.lengths.letterless >= _LETTERLESS)

    def _lines(self, text: str, split: bool) -> Iterator[Normalised]:
        """The lines of a text, or the cells of a table's lines."""
        for match in _LINE.finditer(text):
            if not split or self.lengths is None:
                cells = iter([match])
            else:
                cell = _ROW_CELL if _ROW.fullmatch(match.group()) else _CELL
                cells = cell.finditer(text, *match.span())
            for each in cells:
                first = each.start()
                if self.normalisation == "none":
                    yield Normalised(each.group(), range(first, each.end() + 1))
                else:
                    line = with_places(each.group())
                    yield Normalised(line.text, [first + place for place in line.places])

    def _parts(self, line: str) -> Iterator[Span]:
        """The spans of a line that the model translates one by one, such as sentences."""
        if self.lengths is None:
            yield 0, len(line)
        else:
            yield from self._groups(line, self._mark(line), len(line))

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

    def _groups(self, line: str, start: int, end: int) -> Iterator[Span]:
        """The spans of a part of a line that the model translates at once.

        A span is one sentence, or several sentences of at most ``lengths.longest`` characters.
        """
        together = self.lengths.longest if self.lengths and self.lengths.has_several else 0
        first = last = start
        language = self.languages[0] if self.languages else None
        for place, stop in sentence_spans(line[start:end], language):
            if start + place > first and start + stop - first > together:
                yield first, start + place
                first = start + place
            last = start + stop
        if last > first:
            yield first, last


def _unit(
    line: Normalised, start: int, end: int, *, capitals: bool, edges: Edges | None = None
) -> Iterator[Segment]:
    """The segment from ``start`` to ``end``, without white space and ``edges``; none if blank."""
    part = line.text[start:end]
    text = part.strip()
    start += part.index(text)
    if edges and text:
        first, last = edges.span(text)
        text, start = text[first:last], start + first
    if not text:
        return
    places = line.places[start : start + len(text) + 1]
    if capitals and text.isupper() and len(_WORD.findall(text)) > 1:  # several words
        lowered = text[0] + text[1:].lower()
        if len(lowered) == len(text):
            yield Segment(lowered, places, [], capitals=True)
            return
    yield Segment(text, places, [])


def _within(unit: Segment, ids: list[int], tokenizer: Tokenizer, limit: int) -> Iterator[Segment]:
    """The segment with its ids, or several segments if the ids are more than ``limit``."""
    if len(ids) <= limit:
        yield Segment(unit.text, unit.places, ids, unit.capitals)
        return
    line = Normalised(unit.text, unit.places)
    start = 0
    for part in split_long(unit.text, lambda text: len(tokenizer.encode(text)), limit=limit):
        for piece in _unit(line, start, start + len(part), capitals=False):
            yield Segment(piece.text, piece.places, tokenizer.encode(piece.text), unit.capitals)
        start += len(part)


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
        gap = visible(text[end : segment.span[0]])
        if pieces and gap in ("", " "):
            gap = "" if is_unspaced(language) else " "
        length += len(gap)
        pieces += [gap, translation]
        spans.append((length, length + len(translation)))
        length += len(translation)
        end = segment.span[1]
    return "".join([*pieces, visible(text[end:])]), spans
