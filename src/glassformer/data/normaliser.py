"""Normalises texts that look alike and differ in their bytes to one form.

The normaliser puts characters into Unicode's NFC and makes each run of white space one space. It
takes out the characters that no reader sees, and writes fullwidth letters and digits as ASCII.
Keyboards, web pages and word processors write different forms of a text. A model that has seen one
form translates other forms badly.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
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
"""``none`` leaves texts as they are; ``text`` means :func:`normalised`."""

# The control characters that are not white space.
CONTROLS = [code for code in (*range(32), *range(127, 160)) if not chr(code).isspace()]
# The fullwidth forms of 0 to 9, A to Z and a to z become ASCII. Japanese punctuation stays.
FULLWIDTH = {
    0xFF00 + code: 0x20 + code
    for first, last in ((0x10, 0x19), (0x21, 0x3A), (0x41, 0x5A))
    for code in range(first, last + 1)
}
_LAST = [plane + code for plane in range(0, 0xF0000, 0x10000) for code in (0xFFFE, 0xFFFF)]
# The characters that no text keeps: most default-ignorable characters of Unicode, U+FFF9 to U+FFFD
# (annotations, and the signs of a loss), noncharacters, and control characters.
_NEVER = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffd\ufdd0-\ufdef\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e001f\U000e0080-\U000effff" + "".join(map(chr, CONTROLS + _LAST))
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U0010ffff"  # private use; fonts draw different pictures
# The letters and signs of scripts that join their letters: Arabic, Indic, Khmer, Mongolian …
_JOINING = (
    "\u0620-\u065f\u066e-\u06d3\u06d5-\u06ff\u0710-\u0963\u0966-\u0dff\u0f00-\u109f\u1780-\u17b3"
    "\u17b6-\u180a\u1810-\u1cff\ua840-\uabff\U00010a00-\U00011fff\U0001e900-\U0001e95f"
)
_PICTURE = "\U0001f000-\U0001faff\u2190-\u2bff\u3030\u303d\u3297\u3299©®‼⁉™ℹ"
_TAGS = "\U000e0020-\U000e007f"  # such as England's, after a black flag
#: A pattern of the characters that no reader sees, for :mod:`re`, Oniguruma and JavaScript. U+200C
#: stays between two letters of joining scripts. After such a letter, U+200D and Mongolian's
#: variants and separators stay. Inside an emoji, U+200D, U+FE0F and tags stay.
INVISIBLE = (
    f"[{_NEVER}{_PRIVATE}]"
    f"|\u200c(?!(?<=[{_JOINING}].)[{_JOINING}])"
    f"|[\u180b-\u180f](?<![{_JOINING}].)"
    f"|\u200d(?<![{_JOINING}].)(?!(?:(?<=[{_PICTURE}].)|(?<=[{_PICTURE}]\ufe0f.))[{_PICTURE}])"
    f"|\ufe0f(?<![{_PICTURE}].)(?!(?<=[0-9#*].)\u20e3)"
    f"|[{_TAGS}](?<![\U0001f3f4{_TAGS}].)[{_TAGS}]*"
)
_INVISIBLE = re.compile(INVISIBLE)
_ODD = re.compile(f"[{_NEVER}{_PRIVATE}{_TAGS}\u180b-\u180f\u200c\u200d\ufe0f\uff10-\uff5a]")
_PLAIN = re.compile("[!-~]+(?: [!-~]+)*")  # normalised ASCII: no double space


@dataclass(frozen=True)
class Normalised:
    """A normalised text, and the position of each of its characters in the original text.

    The last entry of ``places`` is the position after the last character.
    """

    text: str
    places: Sequence[int]


def normalised(text: str) -> str:
    """The normalised text, without white space at its ends.

    >>> normalised("  Cafe\\u0301\\u00a0 au\\u200b lait\\t\\uff11\\uff12 ")
    'Café au lait 12'
    """
    if _PLAIN.fullmatch(text):
        return text
    if _ODD.search(text):
        text = _INVISIBLE.sub("", text).translate(FULLWIDTH)
    return " ".join(unicodedata.normalize("NFC", text).split())


def normaliser(normalisation: Normalisation) -> Callable[[str], str]:
    """The function that normalises a text.

    >>> normaliser("text")(" A  dog. "), normaliser("none")(" A  dog. ")
    ('A dog.', ' A  dog. ')
    """
    return normalised if normalisation == "text" else str


def with_places(text: str) -> Normalised:
    """The :func:`normalised` text, with the position of each character in ``text``.

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
        fewer = len(cluster) - len(joined)  # the first character is composed of more characters
        for number, character in enumerate(joined):
            if character.isspace():
                if not characters or characters[-1] == " ":
                    continue
                character = " "
            characters.append(character)
            places.append(stands[max(0, fewer + number) if number else 0])
        if not cluster.isspace():
            end = stands[-1] + 1
    if characters[-1:] == [" "]:
        characters.pop()
        places.pop()
    return Normalised("".join(characters), [*places, end])


def _clusters(text: str) -> list[tuple[str, list[int]]]:
    """The shortest parts of the text that NFC can treat alone, and the places of their characters.

    The parts lack invisible characters. Their fullwidth letters and digits are replaced by ASCII.
    """
    clusters: list[tuple[str, list[int]]] = []
    gone = {place for match in _INVISIBLE.finditer(text) for place in range(*match.span())}
    for place in sorted({*range(len(text))} - gone):
        cluster, stands = clusters.pop() if clusters else ("", [])
        added = text[place].translate(FULLWIDTH)
        if cluster and not _joins(cluster, added):
            clusters.append((cluster, stands))
            cluster, stands = "", []
        clusters.append((cluster + added, [*stands, place]))
    return clusters


def _joins(cluster: str, added: str) -> bool:
    """Whether NFC can join the added character to the cluster, or order it in the cluster."""
    if unicodedata.combining(added):
        return True
    apart = unicodedata.normalize("NFC", cluster) + unicodedata.normalize("NFC", added)
    return unicodedata.normalize("NFC", cluster + added) != apart
