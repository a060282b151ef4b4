"""The patterns of suspicious text: each names a fault that a sentence seems to have.

Many sentences are searched at once: they stand in one text, with ``JOINT`` between them, which no
match crosses.
"""

import re
from collections.abc import Iterator

from glassformer.data.lines import BOM

__all__ = ["JOINT", "LOST", "PATTERNS", "hits", "suspicions"]

#: A character for bytes that another program lost.
LOST = "\ufffd"
#: Unicode calls it a noncharacter: no text has it.
JOINT = "\uffff"

#: What the bytes 0x80 to 0xBF, the later bytes of a UTF-8 character, become in Latin-1 and in
#: Windows-1252; closing quotes and "…" are left out, because they follow letters in honest text.
_LATER_BYTES = "".join(
    sorted(
        {chr(byte) for byte in range(0x80, 0xC0)}
        | set(bytes(range(0x80, 0xA0)).decode("cp1252", "ignore"))
    )
).translate(dict.fromkeys(map(ord, "‘’“”«»‹›…")))
#: The same for characters of three bytes, without the space and dashes that follow a French é.
_LATER_TWO = _LATER_BYTES.translate(dict.fromkeys(map(ord, "\xa0–—")))
_SPACES = "\t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"  # white space but for the plain one
_CJK = "[\u3040-\u30ff\u3400-\u9fff]"  # kana and Han, which stand without spaces

_FIRST_OF_TWO = "ÂÃÄÅÐÑ"  # the first of the two bytes of a character, as Latin-1

# Each begins with one set of characters, which the search passes over quickly.
PATTERNS = {
    # C0 and C1 without the tab, and the line and paragraph separators.
    "control": re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]"),
    "replacement": re.compile(LOST),
    # Capitals before it mean a word in capitals: IRMÃ, LIBERTÉ.
    "mojibake": re.compile(
        f"[{_FIRST_OF_TWO}âã-é](?:(?<=[{_FIRST_OF_TWO}])(?<![A-ZÀ-Þ][{_FIRST_OF_TWO}])[{_LATER_BYTES}]"
        f"|(?<=â)(?:€|\x80|‚¬|„¢)|(?<=[ã-é])[{_LATER_TWO}]{{2}})"
    ),
    "bom-inside": re.compile(BOM),
    "zero-width": re.compile("[\u200b\u2060\xad]"),
    # Inside a text, and not one space.
    "white-space": re.compile(
        rf"[ {_SPACES}](?<=[^\s{JOINT}][ {_SPACES}])(?:[ {_SPACES}]+|(?<=[{_SPACES}]))"
        rf"(?=[^\s{JOINT}])"
    ),
    "markup": re.compile(
        rf"</?[A-Za-z][^<>{JOINT}]{{0,200}}>|&(?:[A-Za-z]{{2,8}}|#\d{{1,6}}|#x\w{{1,5}});"
    ),
    # A space before a comma or stop, subwords, four single letters, or words of kana and Han.
    "tokenised": re.compile(
        rf" (?:[,.。、](?= |{JOINT}|\Z)|▁|(?<=@@ )|(?:[^\W\d_] ){{4}}"
        rf"|(?<={_CJK} ){_CJK}{{1,4}} {_CJK})"
    ),
}
#: A check searches text only if one of these characters is in it.
_TRIGGERS = {
    "control": {*range(0x09), *range(0x0A, 0x20), *range(0x7F, 0xA0), 0x2028, 0x2029},
    "replacement": {ord(LOST)},
    "mojibake": set(map(ord, "ÂÃÄÅÐÑâãäåæçèé")),
    "bom-inside": {ord(BOM)},
    "zero-width": {0x200B, 0x2060, 0xAD},
    "white-space": {*map(ord, " \t\xa0\u1680\u202f\u205f\u3000"), *range(0x2000, 0x200B)},
    "markup": {ord("<"), ord("&")},
    "tokenised": {ord(" ")},
}


def hits(text: str, characters: set[int]) -> Iterator[tuple[str, re.Match[str]]]:
    """Every match of every pattern, with its name; ``characters``: the code points in the text."""
    for code, pattern in PATTERNS.items():
        if not characters.isdisjoint(_TRIGGERS[code]):
            for match in pattern.finditer(text):
                yield code, match


def suspicions(text: str) -> dict[str, str]:
    """The code of each fault that a text seems to have, with the place and its surroundings.

    ``mojibake`` is UTF-8 that was read as Latin-1 or Windows-1252: each character became two or
    three. Its pairs of characters occur in no ordinary text.

    >>> suspicions("schÃ¶n"), suspicions("R&amp;D")
    ({'mojibake': 'schÃ¶n'}, {'markup': 'R&amp;D'})
    >>> suspicions("Äpfel, «café», IRMÃ”")
    {}
    """
    places: dict[str, str] = {}
    for code, match in hits(text, set(map(ord, text))):
        places.setdefault(code, text[max(0, match.start() - 20) : match.end() + 20])
    return places
