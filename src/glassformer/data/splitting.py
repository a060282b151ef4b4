"""Texts as the ids of their pieces: what is too long for one sentence is cut, and joined again."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glassformer.data.tokenizer import Tokenizer

__all__ = ["LONGEST_SOURCE", "Pieces", "joined", "pieces_of", "split_long"]

# A source with more subwords is cut, at sentence ends where it can be, and translated in pieces:
# a model has seen no such lengths in training.
LONGEST_SOURCE = 200

# Where a text may be cut, the best kind first: after a sentence, after a clause, at a space.
_PLACES = (
    re.compile(r"[.!?…]['\"”’»)\]]*\s+|[。！？]\s*"),
    re.compile(r"[;:,–—]\s+|[、，；：]\s*"),
    re.compile(r"\s+"),
)


def split_long(text: str, length: Callable[[str], int], *, limit: int) -> list[str]:
    """``text`` in pieces of at most ``limit``, as ``length`` measures them, cut where it is best.

    A text that is too long is cut near its middle, and each half likewise. A single character is
    never cut, whatever its length. Joined again, the pieces are the text.

    >>> split_long("One two. Three four.", len, limit=12)
    ['One two. ', 'Three four.']
    """
    if len(text) <= 1 or length(text) <= limit:
        return [text]
    middle = len(text) / 2
    for places in _PLACES:
        # In the middle half, lest tiny pieces fall off.
        ends = [m.end() for m in places.finditer(text) if 0.25 < m.end() / len(text) < 0.75]
        if ends:
            cut = min(ends, key=lambda end: abs(end - middle))
            break
    else:
        cut = int(middle)
    return [
        piece
        for half in (text[:cut], text[cut:])
        for piece in split_long(half, length, limit=limit)
    ]


@dataclass(frozen=True)
class Pieces:
    """The ids of each piece, and which pieces each text has; a blank piece has no ids."""

    ids: list[list[int]]
    spans: list[range]


def pieces_of(texts: Sequence[str], tokenizer: Tokenizer, *, limit: int = LONGEST_SOURCE) -> Pieces:
    """``texts`` in pieces of at most ``limit`` subwords, mostly one for each."""

    def length(text: str) -> int:
        return len(tokenizer.encode(text))

    ids: list[list[int]] = []
    spans = []
    for text, whole in zip(texts, tokenizer.encode_batch(texts), strict=True):
        first = len(ids)
        if len(whole) <= limit or not text.strip():
            ids.append(whole if text.strip() else [])
        else:
            pieces = split_long(text, length, limit=limit)
            found = tokenizer.encode_batch(pieces)
            ids += [own if piece.strip() else [] for own, piece in zip(found, pieces, strict=True)]
        spans.append(range(first, len(ids)))
    return Pieces(ids, spans)


def joined(texts: Sequence[str]) -> str:
    """The translations of a text's pieces as one, with spaces between.

    >>> joined([" Ja. ", "", "Nein."]), joined([" Ja. "])
    ('Ja. Nein.', ' Ja. ')
    """
    if len(texts) == 1:
        return texts[0]
    return " ".join(text.strip() for text in texts if text.strip())
