"""Splits a text into sentences, and a part that is too long for a model near its middle."""

import re
from collections.abc import Callable, Iterator

from glassformer.data.words import has_letters
from glassformer.support.languages import language_of

__all__ = ["BREAKS", "has_ordinals", "sentence_spans", "split_long"]

#: The patterns of places for a cut, best first: after a sentence, after a clause, at a space.
BREAKS = (
    re.compile(r"[.!?…]['\"”’»)\]]*\s+|[。！？]\s*"),
    re.compile(r"[;:,–—]\s+|[、，；：]\s*"),
    re.compile(r"\s+"),
)
_OTHER_SPACE = re.compile(r"[^\S\n ]")
# Languages that write "4." for fourth; no sentence ends after such a number.
_ORDINALS = {
    *("az", "bs", "cs", "da", "de", "dsb", "et", "eu", "fi", "fo", "gsw", "hr", "hsb", "hu"),
    *("is", "lb", "lv", "nb", "nn", "no", "pl", "se", "sk", "sl", "smn", "sr", "tr"),
}
_ORDINAL = re.compile(r"(?<!\w)(?:\d{1,3}|[IVXLC]+)\.\s*\Z")
# The abbreviations that sentencex does not know: initials, and titles before names.
_SHORT = re.compile(r"(?<!\w)(?:[Mm]me|[Mm]lle|mevr|dhr|[Vv]ol|[Aa]pprox)\.\s*\Z")
_INITIAL = re.compile(r"(?<![\w.])[A-ZÀ-Þ]\.\s*\Z")
_QUOTED = re.compile(r"[」』]\s*[とって]\Z")  # Japanese: a verb of saying follows


def sentence_spans(text: str, language: str | None = None) -> Iterator[tuple[int, int]]:
    """The span of each sentence of a line; together the spans are the whole text.

    ``language`` is a code such as "en", by which sentencex knows abbreviations. A part without a
    letter, such as the number of a list, stands with the next sentence. A part that ends in an
    ordinal number or in an initial also stands with the next sentence.

    >>> text = "1. He met Dr. Smith.  2. She left."
    >>> [text[slice(*span)] for span in sentence_spans(text, "en")]
    ['1. He met Dr. Smith.  ', '2. She left.']
    """
    from sentencex import segment  # a late import, for which the command line need not wait

    language = language_of(language) or "en"
    start = end = 0
    has_one = False  # whether a letter stands between start and end
    # sentencex 1.0.32 panics at some other white space before a full stop, as in "A\u202f. ?".
    for part in segment(language, _OTHER_SPACE.sub(" ", text)):
        end += len(part)
        has_one = has_one or has_letters(part)
        if has_one and not (end < len(text) and _goes_on(part, text[end], language)):
            yield start, end
            start, has_one = end, False
    if start < len(text):
        yield start, len(text)


def has_ordinals(language: str | None) -> bool:
    """Whether "4." may mean fourth in a language; True for an unknown language."""
    return not language or language_of(language) in _ORDINALS


def _goes_on(part: str, following: str, language: str) -> bool:
    """Whether a sentence goes on after ``part``, where sentencex cuts."""
    end = part[-12:]  # each pattern is shorter
    return bool(
        _SHORT.search(end)
        or (language != "en" and _INITIAL.search(end))
        or (language in _ORDINALS and _ORDINAL.search(end))
        or _QUOTED.search(end + following)
    )


def split_long(text: str, length: Callable[[str], int], *, limit: int) -> list[str]:
    """``text`` in segments whose ``length`` is at most ``limit``.

    The function cuts a longer text near its middle, then cuts the halves likewise. It cuts no
    single character. The segments one after another are the text.

    >>> split_long("One two. Three four.", len, limit=12)
    ['One two. ', 'Three four.']
    """
    if len(text) <= 1 or length(text) <= limit:
        return [text]
    middle = len(text) / 2
    for places in BREAKS:
        # A cut lies in the middle half, so that no segment is tiny.
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
