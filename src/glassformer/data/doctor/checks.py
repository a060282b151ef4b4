"""The doctor's checks of a file's bytes and of the text of one side of a corpus.

Reading stops at the first bad byte; these checks go on, count, and keep the first places. They keep
no text, only counts: of each length and of each character.
"""

import sys
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.data.doctor.patterns import JOINT, LOST, PATTERNS, hits
from glassformer.data.lines import BOM, decode_line, raw_blocks, utf16_name
from glassformer.data.normaliser import normalised

__all__ = ["FileCheck", "Lengths", "SideCheck", "Tally", "lengths", "script"]

_PLACES_KEPT = 5
_EXAMPLE_CHARS = 60
_MADE_UP = "?"
_ENOUGH_LETTERS = 20  # a shorter text may well be a name in another script
_ENOUGH_CASED = 200  # letters that have a case
_RARE = 0.002  # share of the cased letters
_LAST_SCRIPT = 62  # 64 bits hold one for each script

_HAN, _LATIN = "Han", "Latin"
_SCRIPT_OF_NAME = {"CJK": _HAN, "IDEOGRAPHIC": _HAN, "FEMININE": _LATIN, "MASCULINE": _LATIN}
#: Japanese has three scripts in one sentence.
_TOGETHER = {"Hiragana": _HAN, "Katakana": _HAN}


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

    def add_run(self, lines: Sequence[int]) -> None:
        """Counts many places without an example."""
        self.count += len(lines)
        self.lines += lines[: _PLACES_KEPT - len(self.lines)]


class FileCheck:
    """Reads a file to its end, whatever its content, and counts the faults of its bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self.tallies = {code: Tally() for code in ("invalid-utf8", "bom", "crlf", "cr-only")}
        self._lf = Tally()
        self._nul = Tally()
        self._convert = ""  # the command if it is UTF-16

    def read(self) -> Iterator[str]:
        """The text of each line; a ``?`` stands for bytes that are not UTF-8."""
        for block in raw_blocks(self.path):
            raw = block.split(b"\n")
            # A first line may have a byte order mark.
            plain = self.lines > 0 and b"\r" not in block and b"\0" not in block
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
        if b"\r" in raw[:-1]:
            self.tallies["cr-only"].add(self.lines)
        if b"\0" in raw:
            self._nul.add(self.lines)
        if first:
            self._convert = f"iconv -f {utf16_name(raw)} -t UTF-8"
        if first and raw.startswith(BOM.encode()):
            self.tallies["bom"].add(1)
        try:
            return decode_line(raw, first=first)
        except UnicodeDecodeError as error:
            around = error.object[max(0, error.start - 10) : error.end + 10]
            self.tallies["invalid-utf8"].add(self.lines, repr(around))
            # U+FFFD would count as a character that another program lost.
            return decode_line(raw, first=first, errors="replace").replace(LOST, _MADE_UP)

    def findings(self) -> dict[str, Tally]:
        """The faults of the whole file; call it after the file is read."""
        faults = dict(self.tallies)
        mixed = self._mixed_line_ends()
        if self.lines > 1:  # a CR inside a line is a control character
            del faults["cr-only"]
        if mixed.count or faults.get("cr-only", mixed).count:
            del faults["crlf"]
        if 2 * self._nul.count > self.lines:  # UTF-16 has a NUL in each ASCII character
            del faults["invalid-utf8"]
            faults["utf-16"] = replace(self._nul, example=self._convert)
        return faults | {"mixed-line-ends": mixed}

    def _mixed_line_ends(self) -> Tally:
        """The rarer of LF and CR LF if the file has both."""
        crlf, lf = self.tallies["crlf"], self._lf
        # A last line may have no end at all.
        if lf.count == 1 and lf.lines == [self.lines]:
            return Tally()
        return min(crlf, lf, key=lambda tally: tally.count)


class SideCheck:
    """The texts of one side: their lengths, characters, scripts and suspicious places."""

    def __init__(self) -> None:
        self.chars: Counter[int] = Counter()  # number of texts by length
        self.words: Counter[int] = Counter()
        self.characters = np.zeros(1, dtype=np.int64)  # number of characters by code point
        self.tallies = {code: Tally() for code in (*PATTERNS, "not-nfc")}
        self._scripts = _ScriptCheck()

    def add(self, texts: Sequence[str], lines: Sequence[int]) -> list[str]:
        """Takes some sentences; returns them as training normalises them."""
        plain = list(map(normalised, texts))
        self.chars.update(map(len, plain))
        self.words.update([len(text.split()) for text in plain])
        together = JOINT.join(texts) + JOINT
        codes = np.frombuffer(together.encode("utf-32-le"), dtype="<u4")
        counts = np.bincount(codes)
        counts[ord(JOINT)] = 0
        self.characters = _sum(self.characters, counts)
        present = set(np.flatnonzero(counts).tolist())
        ends = np.cumsum([len(text) + 1 for text in texts])
        self._scripts.add(codes, ends, present=present, texts=texts, lines=lines)
        last: dict[str, int] = {}
        for code, match in hits(together, present):
            row = int(np.searchsorted(ends, match.start(), side="right"))
            if last.get(code) != row:
                last[code] = row
                text, at = texts[row], match.start() - (int(ends[row]) - len(texts[row]) - 1)
                self.tallies[code].add(lines[row], text[max(0, at - 20) : at + 20])
        if not unicodedata.is_normalized("NFC", together):
            for text, line in zip(texts, lines, strict=True):
                if not unicodedata.is_normalized("NFC", text):
                    self.tallies["not-nfc"].add(line, text)
        return plain

    def scripts(self) -> dict[str, float]:
        """Each script's share of the letters, the largest first."""
        counts: Counter[str] = Counter()
        for code in np.flatnonzero(self.characters).tolist():
            name = script(chr(code))
            if name:
                counts[name] += int(self.characters[code])
        total = counts.total()
        return {name: round(count / total, 6) for name, count in counts.most_common()}

    def findings(self) -> dict[str, Tally]:
        """The tallies, also those that only the whole side tells."""
        case = self._one_case()
        return (
            self.tallies
            | {"other-script": self._scripts.others()}
            | ({case: Tally(self.chars.total())} if case else {})
        )

    def distance(self, other: "SideCheck") -> float:
        """Half of the absolute differences of the characters' shares: 0 for equal, 1 for none."""
        mine, others = (side.characters / max(1, side.characters.sum()) for side in (self, other))
        return float(np.abs(_sum(mine, -others)).sum() / 2)

    def _one_case(self) -> str | None:
        """``lower-case`` or ``upper-case`` if hardly a letter of the side has the other."""
        letters = upper = lower = 0
        for code in np.flatnonzero(self.characters).tolist():
            character, count = chr(code), int(self.characters[code])
            letters += count * character.isalpha()
            if character.title() != character.lower():  # Georgian letters have no title case
                upper += count * character.isupper()
                lower += count * character.islower()
        if upper + lower < max(_ENOUGH_CASED, letters / 2):
            return None
        if upper <= _RARE * (upper + lower):
            return "lower-case"
        return "upper-case" if lower <= _RARE * (upper + lower) else None


def _sum(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """The sum of two arrays; the shorter one goes on with zeros."""
    shorter, longer = sorted((first, second), key=len)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total


class _ScriptCheck:
    """The scripts of each text: a text may have none of the letters of the rest of its side."""

    def __init__(self) -> None:
        self._names: list[str] = [""]  # of the numbers in ``_numbers``
        self._numbers = np.zeros(sys.maxunicode + 1, dtype=np.uint8)  # 0: not looked up, no letter
        self._known: set[int] = set()
        self._letters: Counter[int] = Counter()
        self._tallies: dict[int, Tally] = {}  # by the set of scripts, in bits

    def add(
        self,
        codes: NDArray[np.uint32],
        ends: NDArray[np.int64],
        *,
        present: set[int],
        texts: Sequence[str],
        lines: Sequence[int],
    ) -> None:
        """Takes the code points of some texts, which end at ``ends``, and those that occur."""
        for code in present - self._known:
            self._known.add(code)
            name = script(chr(code))
            if name:
                self._numbers[code] = self._number(_TOGETHER.get(name, name))
        numbers = self._numbers[codes]
        starts = np.concatenate([[0], ends[:-1]])
        letters = np.add.reduceat(numbers > 0, starts, dtype=np.int64)
        bits = np.left_shift(np.uint64(1), numbers.astype(np.uint64)) & ~np.uint64(1)
        sets = np.bitwise_or.reduceat(bits, starts)
        counts = np.bincount(numbers)
        self._letters.update(dict(enumerate(counts.tolist())))
        enough = letters >= _ENOUGH_LETTERS
        for scripts in np.unique(sets[enough]).tolist():
            first, *others = np.flatnonzero(enough & (sets == scripts)).tolist()
            tally = self._tallies.setdefault(scripts, Tally())
            tally.add(lines[first], texts[first])
            tally.add_run([lines[row] for row in others])

    def _number(self, name: str) -> int:
        if name not in self._names:
            self._names.append(name)
        return min(self._names.index(name), _LAST_SCRIPT)

    def others(self) -> Tally:
        """The texts with no letter of the side's main script."""
        self._letters.pop(0, None)
        if not self._letters:
            return Tally()
        main = self._letters.most_common(1)[0][0]
        others = [tally for scripts, tally in self._tallies.items() if not scripts >> main & 1]
        lines = sorted(line for tally in others for line in tally.lines)[:_PLACES_KEPT]
        example = min(others, key=lambda tally: tally.lines[0]).example if others else ""
        return Tally(sum(tally.count for tally in others), lines, example)


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
