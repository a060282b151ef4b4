"""One form for texts that look alike and differ in their bytes.

The normaliser puts characters into Unicode's NFC and makes each run of white space one space. It
takes out invisible characters, and writes fullwidth letters and digits as ASCII. Keyboards, web
pages and word processors differ in all of these. A model that has seen one form translates the
others badly.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "CONTROLS",
    "FULLWIDTH",
    "INVISIBLE",
    "Normalisation",
    "Normalised",
    "normalised",
    "normaliser",
    "with_places",
]

Normalisation = Literal["none", "text"]
"""``none``: texts stay as they are. ``text``: :func:`normalised`."""

# Zero-width space, word joiner, byte order mark, soft hyphen; and the control characters that are
# no white space. Joiners stay: Persian, Hindi and emoji need them.
INVISIBLE = [0x200B, 0x2060, 0xFEFF, 0xAD]
CONTROLS = [code for code in (*range(32), *range(127, 160)) if not chr(code).isspace()]
# From the fullwidth forms to ASCII: 0 to 9, A to Z, a to z. Punctuation stays: it is Japanese.
FULLWIDTH = {
    0xFF00 + code: 0x20 + code
    for first, last in ((0x10, 0x19), (0x21, 0x3A), (0x41, 0x5A))
    for code in range(first, last + 1)
}
_TABLE: dict[int, int | None] = {**FULLWIDTH, **dict.fromkeys((*INVISIBLE, *CONTROLS))}
_PLAIN = re.compile("[!-~]+(?: [!-~]+)*")  # ASCII without a double space: already normalised


@dataclass(frozen=True)
class Normalised:
    """A text, and the place of each of its characters in the text as typed.

    ``places`` has one entry more than the text: the place after the last character.
    """

    text: str
    places: Sequence[int]


def normalised(text: str) -> str:
    """The text in its one form, without white space around it.

    >>> normalised("  Cafe\\u0301\\u00a0 au\\u200b lait\\t\\uff11\\uff12 ")
    'Café au lait 12'
    """
    if _PLAIN.fullmatch(text):
        return text
    return " ".join(unicodedata.normalize("NFC", text.translate(_TABLE)).split())


def normaliser(normalisation: Normalisation) -> Callable[[str], str]:
    """The function that normalises a text.

    >>> normaliser("text")(" A  dog. "), normaliser("none")(" A  dog. ")
    ('A dog.', ' A  dog. ')
    """
    return normalised if normalisation == "text" else str


def with_places(text: str) -> Normalised:
    """:func:`normalised`, with the place of each character in ``text``.

    >>> with_places(" e\\u0301  x")
    Normalised(text='é x', places=[1, 3, 5, 6])
    """
    if normalised(text) == text:
        return Normalised(text, range(len(text) + 1))
    characters: list[str] = []
    places: list[int] = []
    end = 0
    for cluster, stands in _clusters(text):
        joined = unicodedata.normalize("NFC", cluster)
        alike = len(joined) == len(cluster)
        for number, character in enumerate(joined):
            if character.isspace():
                if not characters or characters[-1] == " ":
                    continue
                character = " "
            characters.append(character)
            places.append(stands[number] if alike else stands[0])
        if not cluster.isspace():
            end = stands[-1] + 1
    if characters[-1:] == [" "]:
        characters.pop()
        places.pop()
    return Normalised("".join(characters), [*places, end])


def _clusters(text: str) -> Iterator[tuple[str, list[int]]]:
    """The shortest parts of the text that NFC leaves apart, and the places of their characters.

    The table has translated them.
    """
    cluster, stands = "", [0]
    for place, character in enumerate(text):
        added = character.translate(_TABLE)
        if not added:
            continue
        if cluster and not _joins(cluster, added):
            yield cluster, stands
            cluster = ""
        stands = [*stands, place] if cluster else [place]
        cluster += added
    if cluster:
        yield cluster, stands


def _joins(cluster: str, added: str) -> bool:
    """Whether NFC can join, or order, the added character with those before it."""
    if unicodedata.combining(added):
        return True
    apart = unicodedata.normalize("NFC", cluster) + unicodedata.normalize("NFC", added)
    return unicodedata.normalize("NFC", cluster + added) != apart
