"""Cutting a text that is too long for one sentence."""

import re
from collections.abc import Callable

__all__ = ["split_long"]

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
