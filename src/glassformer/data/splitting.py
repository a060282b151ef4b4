"""Splits a long text into segments that a model can translate, and joins the translations."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glassformer.data.tokenizer import Tokenizer

__all__ = ["LONGEST_SOURCE", "Segments", "joined", "segments_of", "split_long"]

# A source with more subwords is split, at sentence ends if it has some: no model is trained on
# such lengths.
LONGEST_SOURCE = 200

# The places for a cut, the best kind first: after a sentence, after a clause, at a space.
_PLACES = (
    re.compile(r"[.!?…]['\"”’»)\]]*\s+|[。！？]\s*"),
    re.compile(r"[;:,–—]\s+|[、，；：]\s*"),
    re.compile(r"\s+"),
)


def split_long(text: str, length: Callable[[str], int], *, limit: int) -> list[str]:
    """``text`` in segments of at most ``limit``, as ``length`` measures them.

    A longer text is cut near its middle, and each half likewise. A single character is never cut,
    whatever its length. The segments one after the other are the text.

    >>> split_long("One two. Three four.", len, limit=12)
    ['One two. ', 'Three four.']
    """
    if len(text) <= 1 or length(text) <= limit:
        return [text]
    middle = len(text) / 2
    for places in _PLACES:
        # Only in the middle half: no segment is tiny.
        ends = [m.end() for m in places.finditer(text) if 0.25 < m.end() / len(text) < 0.75]
        if ends:
            cut = min(ends, key=lambda end: abs(end - middle))
            break
    else:
        cut = int(middle)
    return [
        segment
        for half in (text[:cut], text[cut:])
        for segment in split_long(half, length, limit=limit)
    ]


@dataclass(frozen=True)
class Segments:
    """The subword ids of each segment, and the segments of each text; a blank one has no ids."""

    ids: list[list[int]]
    spans: list[range]


def segments_of(
    texts: Sequence[str], tokenizer: Tokenizer, *, limit: int = LONGEST_SOURCE
) -> Segments:
    """``texts`` in segments of at most ``limit`` subwords; a short text is one segment."""

    def length(text: str) -> int:
        return len(tokenizer.encode(text))

    ids: list[list[int]] = []
    spans = []
    for text, whole in zip(texts, tokenizer.encode_batch(texts), strict=True):
        first = len(ids)
        if len(whole) <= limit or not text.strip():
            ids.append(whole if text.strip() else [])
        else:
            segments = split_long(text, length, limit=limit)
            encoded = tokenizer.encode_batch(segments)
            ids += [row if seg.strip() else [] for row, seg in zip(encoded, segments, strict=True)]
        spans.append(range(first, len(ids)))
    return Segments(ids, spans)


def joined(texts: Sequence[str]) -> str:
    """The translations of a text's segments as one text, with spaces between.

    >>> joined([" Ja. ", "", "Nein."]), joined([" Ja. "])
    ('Ja. Nein.', ' Ja. ')
    """
    if len(texts) == 1:
        return texts[0]
    return " ".join(text.strip() for text in texts if text.strip())
