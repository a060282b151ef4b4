"""The patterns of suspicious text, under the fault that a match shows.

The doctor searches many sentences at once, as one text with ``JOINT`` between sentences. No match
crosses ``JOINT``.
"""

import re
from collections.abc import Iterator

from glassformer.data.lines import BOM
from glassformer.data.normaliser import INVISIBLE

__all__ = ["JOINT", "LOST", "PATTERNS", "hits"]

#: The character that a program writes for bytes that it cannot read.
LOST = "\ufffd"
#: A noncharacter of Unicode, which no text has.
JOINT = "\uffff"

#: The later bytes of UTF-8 characters, 0x80 to 0xBF, as Latin-1 or Windows-1252 characters. The
#: text lacks closing quotes and "…", because in sound text closing quotes and "…" follow letters.
_LATER_BYTES = "".join(
    sorted(
        {chr(byte) for byte in range(0x80, 0xC0)}
        | set(bytes(range(0x80, 0xA0)).decode("cp1252", "ignore"))
    )
).translate(dict.fromkeys(map(ord, "‘’“”«»‹›…")))
#: The later bytes of characters of three bytes, without the space and dashes after a French é.
_LATER_TWO = _LATER_BYTES.translate(dict.fromkeys(map(ord, "\xa0–—")))
_SPACES = "\t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"  # white space without the plain space
_CJK = "[\u3040-\u30ff\u3400-\u9fff]"  # kana and Han, which need no spaces

# C0 and C1 without the tab; and the line and paragraph separators.
_CONTROLS = "\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029"
_FIRST_OF_TWO = "ÂÃÄÅÐÑ"  # the first of the two bytes of a character, as Latin-1

# For each fault, the pattern's first character and the rest. The search skips a pattern if no text
# has the first character.
_PARTS = {
    "control": (f"[{_CONTROLS}]", ""),
    "replacement": (LOST, ""),
    # A match does not follow capitals, as in the sound words IRMÃ and LIBERTÉ.
    "mojibake": (
        f"[{_FIRST_OF_TWO}âã-é]",
        f"(?:(?<=[{_FIRST_OF_TWO}])(?<![A-ZÀ-Þ][{_FIRST_OF_TWO}])[{_LATER_BYTES}]"
        f"|(?<=â)(?:€|\x80|‚¬|„¢)|(?<=[ã-é])[{_LATER_TWO}]{{2}})",
    ),
    "bom-inside": (BOM, ""),
    "zero-width": (f"(?![{_CONTROLS}{LOST}{BOM}{JOINT}])(?:{INVISIBLE})", ""),
    # The pattern finds white space inside a text, other than one plain space.
    "white-space": (
        f"[ {_SPACES}]",
        rf"(?<=[^\s{JOINT}][ {_SPACES}])(?:[ {_SPACES}]+|(?<=[{_SPACES}]))(?=[^\s{JOINT}])",
    ),
    "markup": (
        "[<&]",
        rf"(?:(?<=<)/?[A-Za-z][^<>{JOINT}]{{0,200}}>"
        r"|(?<=&)(?:[A-Za-z]{2,8}|#\d{1,6}|#x\w{1,5});)",
    ),
    # The pattern finds " ," and " .", subwords, four single letters, or words of kana and Han.
    "tokenised": (
        " ",
        rf"(?:[,.。、](?= |{JOINT}|\Z)|▁|(?<=@@ )|(?:[^\W\d_] ){{4}}"
        rf"|(?<={_CJK} ){_CJK}{{1,4}} {_CJK})",
    ),
}
_FIRSTS = {code: re.compile(first) for code, (first, _) in _PARTS.items()}
PATTERNS = {code: re.compile(first + rest) for code, (first, rest) in _PARTS.items()}


def hits(text: str, characters: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Every match of every pattern, with the fault; ``characters`` holds each character once."""
    for code, pattern in PATTERNS.items():
        if _FIRSTS[code].search(characters):
            for match in pattern.finditer(text):
                yield code, match
