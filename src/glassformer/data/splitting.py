"""Splits a text into sentences, and a part that is too long for a model near its middle."""

import re
from collections.abc import Callable, Iterator

__all__ = ["sentence_spans", "split_long"]

# The places for a cut, the best kind first: after a sentence, after a clause, at a space.
_PLACES = (
    re.compile(r"[.!?…]['\"”’»)\]]*\s+|[。！？]\s*"),
    re.compile(r"[;:,–—]\s+|[、，；：]\s*"),
    re.compile(r"\s+"),
)
_OTHER_SPACE = re.compile(r"[^\S\n ]")


def sentence_spans(text: str, language: str | None = None) -> Iterator[tuple[int, int]]:
    """The first and the last place of each sentence of a line; all together they are the text.

    ``language`` is a code such as "en": sentencex knows the abbreviations of many languages. A part
    without a letter, such as the number of a list, stands with the next sentence.

    >>> text = "1. He met Dr. Smith.  2. She left."
    >>> [text[slice(*span)] for span in sentence_spans(text, "en")]
    ['1. He met Dr. Smith.  ', '2. She left.']
    """
    from sentencex import segment  # the command line need not wait for it

    start = end = 0
    # sentencex 1.0.32 panics at some other white space before a full stop, as in "A\u202f. ?".
    for part in segment(language or "en", _OTHER_SPACE.sub(" ", text)):
        end += len(part)
        if any(map(str.isalpha, part)):
            yield start, end
            start = end
    if start < len(text):
        yield start, len(text)


def split_long(text: str, length: Callable[[str], int], *, limit: int) -> list[str]:
    """``text`` in segments of at most ``limit``, as ``length`` measures them.

    A longer text is cut near its middle, and each half likewise. A single character is never cut.
    The segments one after the other are the text.

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
