"""The doctor's checks of a file's bytes and of the text of one side of a corpus.

Reading stops at the first bad byte; these checks go on, count, and keep the first places. They keep
no text, only counts: of each length and of each character. They search many sentences at once, and
each one only if the search hits.
"""

import re
import sys
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import numpy as np

from glassformer.data.lines import BOM, decode_line, raw_blocks

__all__ = ["FileCheck", "Lengths", "SideCheck", "Tally", "lengths", "script", "suspicions"]

_PLACES_KEPT = 5
_EXAMPLE_CHARS = 60
_LOST, _MADE_UP = "\ufffd", "?"

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
    "replacement": re.compile(_LOST),
    "mojibake": _MOJIBAKE,
    "bom-inside": re.compile(BOM),
}
#: Two quick searches that let most text through; if neither hits, no check does.
_SUSPECT = (
    re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufffd\ufeff]"),
    re.compile(f"[ÂÃÄÅÐÑâã-é][{_LATER_BYTES}]"),
)

_HAN, _LATIN = "Han", "Latin"
_SCRIPT_OF_NAME = {"CJK": _HAN, "IDEOGRAPHIC": _HAN, "FEMININE": _LATIN, "MASCULINE": _LATIN}


@dataclass
class Tally:
    """How often a fault occurs, its first line numbers, and the first example."""

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

    def add_run(self, lines: range) -> None:
        """Counts many places without an example."""
        self.count += len(lines)
        self.lines += lines[: _PLACES_KEPT - len(self.lines)]


class FileCheck:
    """Reads a file to its end, whatever its content, and counts the faults of its bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self.tallies = {code: Tally() for code in ("invalid-utf8", "bom", "crlf")}
        self._lf = Tally()

    def read(self) -> Iterator[str]:
        """The text of each line; a ``?`` stands for bytes that are not UTF-8."""
        for block in raw_blocks(self.path):
            raw = block.split(b"\n")
            plain = self.lines > 0 and b"\r" not in block  # a first line may have a BOM
            try:
                texts = block.decode().split("\n") if plain else []
            except UnicodeDecodeError:
                plain = False
            if plain:
                self._lf.add_run(range(self.lines + 1, self.lines + len(raw) + 1))
                self.lines += len(raw)
                yield from texts
            else:
                yield from map(self._read_one, raw)

    def _read_one(self, raw: bytes) -> str:
        self.lines += 1
        first = self.lines == 1
        (self.tallies["crlf"] if raw.endswith(b"\r") else self._lf).add(self.lines)
        if first and raw.startswith(BOM.encode()):
            self.tallies["bom"].add(1)
        try:
            return decode_line(raw, first=first)
        except UnicodeDecodeError as error:
            around = error.object[max(0, error.start - 10) : error.end + 10]
            self.tallies["invalid-utf8"].add(self.lines, repr(around))
            # U+FFFD would count as a character that another program lost.
            return decode_line(raw, first=first, errors="replace").replace(_LOST, _MADE_UP)

    def mixed_line_ends(self) -> Tally:
        """The rarer of LF and CR LF if the file has both; call it after the whole file is read."""
        crlf, lf = self.tallies["crlf"], self._lf
        # A last line may have no end at all.
        if lf.count == 1 and lf.lines == [self.lines]:
            return Tally()
        return min(crlf, lf, key=lambda tally: tally.count)


class SideCheck:
    """The texts of one side: their lengths, scripts and suspicious characters."""

    def __init__(self) -> None:
        self.chars: Counter[int] = Counter()  # number of texts by length
        self.words: Counter[int] = Counter()
        self.tallies = {code: Tally() for code in _CHECKS}
        self._characters = np.zeros(sys.maxunicode + 1, dtype=np.int64)

    def add(self, texts: Sequence[str], lines: Sequence[int]) -> list[str]:
        """Takes some sentences; returns them without the space around them."""
        trimmed = [text.strip() for text in texts]
        self.chars.update(map(len, trimmed))
        self.words.update([len(text.split()) for text in trimmed])
        # A tab is in no pattern, so no match crosses from one text to the next.
        together = "\t".join(texts)
        codes = np.frombuffer(together.encode("utf-32-le"), dtype="<u4")
        counts = np.bincount(codes)
        self._characters[: len(counts)] += counts
        if any(pattern.search(together) for pattern in _SUSPECT):
            self._look_closely(texts, lines)
        return trimmed

    def _look_closely(self, texts: Iterable[str], lines: Iterable[int]) -> None:
        for text, line in zip(texts, lines, strict=True):
            if any(pattern.search(text) for pattern in _SUSPECT):
                for code, example in suspicions(text).items():
                    self.tallies[code].add(line, example)

    def scripts(self) -> dict[str, float]:
        """Each script's share of the letters, the largest first."""
        counts: Counter[str] = Counter()
        for code in np.flatnonzero(self._characters).tolist():
            name = script(chr(code))
            if name:
                counts[name] += int(self._characters[code])
        total = counts.total()
        return {name: round(count / total, 6) for name, count in counts.most_common()}


def suspicions(text: str) -> dict[str, str]:
    """The code of each fault that a text seems to have, with the place and its surroundings.

    ``mojibake`` is UTF-8 that was read as Latin-1 or Windows-1252: each character became two or
    three. Its pairs of characters occur in no ordinary text.

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
    """The script of a letter, from its Unicode name; ``None`` for any other character.

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
    """The lengths of a side's sentences in one unit; ``p95``: 95 % of them are no longer."""

    min: int
    median: int
    mean: float
    p95: int
    p99: int
    max: int


def lengths(counts: Counter[int]) -> Lengths | None:
    """The table of lengths from the count of each length; ``None`` without any.

    >>> lengths(Counter([3, 1, 2]))
    Lengths(min=1, median=2, mean=2.0, p95=3, p99=3, max=3)
    """
    if not counts:
        return None
    values = sorted(counts)
    below = list(accumulate(counts[value] for value in values))  # texts of at most this length
    total = below[-1]
    median, p95, p99 = (
        values[bisect_left(below, share * total, key=lambda many: 100 * many)]
        for share in (50, 95, 99)
    )
    mean = sum(value * counts[value] for value in values) / total
    return Lengths(values[0], median, round(mean, 2), p95, p99, values[-1])
