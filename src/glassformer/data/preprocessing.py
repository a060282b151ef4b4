"""From a text as people have it to the segments that a model reads, and back.

A model reads units of the kind that it has learnt from: mostly single sentences, in one form of
characters. A text is cut at its line ends and, if the model has learnt from single sentences, at
sentence ends. Each segment is normalised, and remembers where it stood. The white space between two
segments also stands between their translations, and so does the bullet of a list.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from glassformer.data.normaliser import Normalisation, Normalised, visible, with_places
from glassformer.data.splitting import sentence_spans, split_long
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Span, is_unspaced

__all__ = [
    "LONGEST_SOURCE",
    "SINGLE_SENTENCES",
    "Preprocessing",
    "Segment",
    "SourceLengths",
    "joined",
]

# A source with more subwords is cut, at sentence ends if it has some: no model is trained on
# such lengths.
LONGEST_SOURCE = 200

_LINE = re.compile(r"[^\r\n]+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_BULLET = re.compile(r"\s*[-–—*+•‣◦▪·]\s")  # of a list; "4. " may begin a date
_SEVERAL = 0.2  # share of sources with several sentences, from which a model can read them


@dataclass(frozen=True)
class SourceLengths:
    """The sources that a model has learnt from: percentiles of their characters, and sentences."""

    median: int
    longest: int
    """The 99th percentile."""
    several: float
    """The share of sources with several sentences."""

    @property
    def has_several(self) -> bool:
        """Whether so many sources have several sentences that a model learns to read them."""
        return self.several >= _SEVERAL

    @classmethod
    def of(cls, sources: Sequence[str], language: str | None) -> "SourceLengths":
        """The lengths of a sample of sources, at least one.

        >>> SourceLengths.of(["A dog.", "A cat. A dog.", "A man runs."], "en")
        SourceLengths(median=11, longest=13, several=0.3333)
        """
        lengths = sorted(map(len, sources))
        several = sum(len(list(sentence_spans(source, language))) > 1 for source in sources)
        last = len(lengths) - 1
        return cls(
            lengths[last // 2],
            lengths[round(0.99 * last)],
            round(several / len(lengths), 4),
        )


SINGLE_SENTENCES = SourceLengths(median=100, longest=400, several=0.0)
"""Of a model of others, whose training text is not at hand: single sentences; the two percentiles
are a guess, which no translation depends on."""


@dataclass(frozen=True)
class Segment:
    """A unit of translation: its text as the model reads it, and its ids.

    ``places`` has the place of each character in the text as typed, and the place after the last.
    ``capitals``: the text was typed in capitals; the model reads it in lower case.
    """

    text: str
    places: Sequence[int]
    ids: list[int]
    capitals: bool = False

    @property
    def span(self) -> Span:
        """Its characters in the text as typed."""
        return self.places[0], self.places[-1]


@dataclass(frozen=True)
class Preprocessing:
    """How a bundle reads texts.

    ``lengths``: None if nobody has measured the training's sources; then only the ends of lines
    separate segments.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["A dog runs.", "A cat sleeps."] * 3, vocab_size=300)
    >>> preprocessing = Preprocessing("text", ("en", "de"), SourceLengths(10, 20, 0.0))
    >>> [segments] = preprocessing.segments([" A  dog.  A CAT.\\n- A dog "], tokenizer, limit=200)
    >>> [(segment.text, segment.span) for segment in segments]
    [('A dog.', (1, 8)), ('A CAT.', (10, 16)), ('A dog', (19, 24))]
    """

    normalisation: Normalisation = "none"
    languages: tuple[str, str] | None = None
    lengths: SourceLengths | None = None

    def segments(
        self, texts: Sequence[str], tokenizer: Tokenizer, *, limit: int, split: bool = True
    ) -> list[list[Segment]]:
        """The segments of each text, with at most ``limit`` subwords; a blank text has none.

        Without ``split``, a sentence end separates segments only in a line of more subwords.
        """
        units = [list(self._units(text, split)) for text in texts]
        ids = iter(tokenizer.encode_batch([unit.text for row in units for unit in row]))
        return [
            [segment for unit in row for segment in _within(unit, next(ids), tokenizer, limit)]
            for row in units
        ]

    def _units(self, text: str, split: bool) -> Iterator[Segment]:
        """The segments of a text without their ids, however long."""
        for line in self._lines(text):
            if split and self.lengths and (bullet := _BULLET.match(line.text)):
                line = Normalised(line.text[bullet.end() :], line.places[bullet.end() :])
            for start, end in self._groups(line.text) if split else [(0, len(line.text))]:
                yield from _unit(line, start, end, capitals=self.normalisation == "text")

    def _lines(self, text: str) -> Iterator[Normalised]:
        for match in _LINE.finditer(text):
            first = match.start()
            if self.normalisation == "none":
                yield Normalised(match.group(), range(first, match.end() + 1))
            else:
                line = with_places(match.group())
                yield Normalised(line.text, [first + place for place in line.places])

    def _groups(self, line: str) -> Iterator[Span]:
        """The spans of a line that are translated together: sentences, or as many as fit.

        Together they have at most the 99th percentile of the training's characters.
        """
        if self.lengths is None:
            yield 0, len(line)
            return
        together = self.lengths.longest if self.lengths.has_several else 0
        first = last = 0
        for start, end in sentence_spans(line, self.languages[0] if self.languages else None):
            if start > first and end - first > together:
                yield first, start
                first = start
            last = end
        if last > first:
            yield first, last


def _unit(line: Normalised, start: int, end: int, *, capitals: bool) -> Iterator[Segment]:
    """The segment of these characters, without the white space around them; none if blank."""
    part = line.text[start:end]
    text = part.strip()
    if not text:
        return
    start += part.index(text)
    places = line.places[start : start + len(text) + 1]
    if capitals and text.isupper() and len(_WORD.findall(text)) > 1:  # several, all in capitals
        lowered = text[0] + text[1:].lower()
        if len(lowered) == len(text):
            yield Segment(lowered, places, [], capitals=True)
            return
    yield Segment(text, places, [])


def _within(unit: Segment, ids: list[int], tokenizer: Tokenizer, limit: int) -> Iterator[Segment]:
    """The segment with its ids; several if it has more than ``limit``."""
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
    """The translation of ``text`` from those of its segments, and the span of each in it.

    The white space of the text, and its bullets, stand around and between them. Between two
    sentences, a language with spaces has one; a ``language`` without spaces has none.

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
