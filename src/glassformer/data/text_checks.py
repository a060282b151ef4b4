"""What the doctor looks for in a file and in one side of a corpus.

Reading stops at the first bad byte; these checks go on, count, and remember the first places. They
keep numbers only, never the text: lengths, a 64-bit hash of each sentence, and how often each
character occurs.
"""

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glassformer.data.lines import BOM, decode_line, raw_lines

__all__ = ["FileCheck", "Lengths", "SideCheck", "Tally", "lengths", "script", "suspicions"]

_PLACES_KEPT = 5
_EXAMPLE_CHARS = 60
_FLUSH_LINES = 1000

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
# Capitals before it mean a word in capitals: IRMÃ, LIBERTÉ.
_MOJIBAKE = re.compile(
    f"(?<![A-ZÀ-Þ])[ÂÃÄÅÐÑ][{_LATER_BYTES}]|â€|â\x80|â‚¬|â„¢|[ã-é][{_LATER_TWO}]{{2}}"
)
#: C0 and C1 without the tab, and the line and paragraph separators.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_CHECKS = {
    "control": _CONTROL,
    "replacement": re.compile("\ufffd"),
    "mojibake": _MOJIBAKE,
    "bom-inside": re.compile(BOM),
}
#: One search that lets most lines through: a character that some check looks for.
_SUSPECT = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufffd\ufeffÂÃÄÅÐÑâã-é]")

_HAN, _LATIN = "Han", "Latin"
_SCRIPT_OF_NAME = {"CJK": _HAN, "IDEOGRAPHIC": _HAN, "FEMININE": _LATIN, "MASCULINE": _LATIN}


@dataclass
class Tally:
    """How often something was found, the first line numbers, and the first example."""

    count: int = 0
    lines: list[int] = field(default_factory=list)
    example: str = ""

    def add(self, line: int, example: str = "") -> None:
        """Counts one place; ``line`` counts from 1."""
        if not self.count:
            self.example = example[:_EXAMPLE_CHARS]
        self.count += 1
        if len(self.lines) < _PLACES_KEPT:
            self.lines.append(line)


class FileCheck:
    """Reads a file to its end whatever is in it, and counts what is wrong with its bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self.found = {code: Tally() for code in ("invalid-utf8", "bom", "crlf")}
        self._lf = Tally()

    def read(self) -> Iterator[tuple[str, bool]]:
        """The text of each line, and whether it was valid UTF-8."""
        for raw in raw_lines(self.path):
            self.lines += 1
            first = self.lines == 1
            (self.found["crlf"] if raw.endswith(b"\r") else self._lf).add(self.lines)
            if first and raw.startswith(BOM.encode()):
                self.found["bom"].add(1)
            try:
                text, valid = decode_line(raw, first=first), True
            except UnicodeDecodeError as error:
                text, valid = decode_line(raw, first=first, errors="replace"), False
                around = error.object[max(0, error.start - 10) : error.end + 10]
                self.found["invalid-utf8"].add(self.lines, repr(around))
            yield text, valid

    def mixed_line_ends(self) -> Tally:
        """The rarer of LF and CR LF, where the file has both; call it when all is read."""
        crlf, lf = self.found["crlf"], self._lf
        # A last line may have no end at all.
        if lf.count == 1 and lf.lines == [self.lines]:
            return Tally()
        return min(crlf, lf, key=lambda tally: tally.count)


class SideCheck:
    """The texts of one side: how long, in which script, and what looks wrong in them."""

    def __init__(self) -> None:
        self.chars, self.words = array("I"), array("I")
        self.hashes = array("q")
        self.found = {code: Tally() for code in _CHECKS}
        self._characters: Counter[str] = Counter()
        self._waiting: list[str] = []

    def add(self, text: str, *, line: int, valid: bool) -> None:
        """Takes one sentence; what reading broke (not ``valid``) is the file's fault, not its."""
        trimmed = text.strip()
        self.chars.append(len(trimmed))
        self.words.append(len(trimmed.split()))
        self.hashes.append(hash(trimmed))
        self._waiting.append(trimmed)
        if len(self._waiting) == _FLUSH_LINES:
            self._flush()
        if valid and _SUSPECT.search(text):
            for code, example in suspicions(text).items():
                self.found[code].add(line, example)

    def _flush(self) -> None:
        self._characters.update("".join(self._waiting))
        self._waiting.clear()

    def scripts(self) -> dict[str, float]:
        """Each script's share of the letters, the largest first."""
        self._flush()
        counts: Counter[str] = Counter()
        for character, count in self._characters.items():
            name = script(character)
            if name:
                counts[name] += count
        total = counts.total()
        return {name: round(count / total, 6) for name, count in counts.most_common()}


def suspicions(text: str) -> dict[str, str]:
    """What looks wrong in a text: the finding's code, and the place in its surroundings.

    ``mojibake`` is UTF-8 that was read as Latin-1 or Windows-1252: each character became two or
    three. It is told by pairs that no honest text has.

    >>> suspicions("schÃ¶n")
    {'mojibake': 'schÃ¶n'}
    >>> suspicions("Äpfel, «café», IRMÃ”")
    {}
    """
    hits = {code: pattern.search(text) for code, pattern in _CHECKS.items()}
    return {
        code: text[max(0, hit.start() - 20) : hit.end() + 20] for code, hit in hits.items() if hit
    }


def script(character: str) -> str | None:
    """The script of a letter, from its Unicode name; ``None`` for what is no letter.

    >>> script("ß"), script("ж"), script("語"), script("7")
    ('Latin', 'Cyrillic', 'Han', None)
    """
    if unicodedata.category(character)[0] not in "LM":
        return None
    words = unicodedata.name(character, "UNNAMED").split()
    if words[0] in ("FULLWIDTH", "HALFWIDTH"):
        words = words[1:]
    first = words[0].split("-")[0]
    if first in ("COMBINING", "VARIATION"):  # such marks belong to any script
        return None
    return _SCRIPT_OF_NAME.get(first, first.capitalize())


@dataclass(frozen=True)
class Lengths:
    """How long the sentences of a side are, in one unit; ``p95``: 95 % are no longer."""

    min: int
    median: int
    mean: float
    p95: int
    p99: int
    max: int


def lengths(numbers: NDArray[np.uint32]) -> Lengths | None:
    """The table of some lengths; ``None`` where there are none.

    >>> lengths(np.array([3, 1, 2], dtype=np.uint32))
    Lengths(min=1, median=2, mean=2.0, p95=3, p99=3, max=3)
    """
    if not len(numbers):
        return None
    ranks = np.percentile(numbers, [0, 50, 95, 99, 100], method="inverted_cdf")
    low, median, p95, p99, high = (int(rank) for rank in ranks)
    return Lengths(low, median, round(float(numbers.mean()), 2), p95, p99, high)
