"""The doctor's checks of a file's bytes and of the text of one side of a corpus.

Training's reader stops at the first bad byte. The checks go on, count faults, and keep the first
places. The checks keep no text, only the counts of lengths and characters.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from glassformer.data.lines import BOM, decode_line, raw_blocks, utf16_name
from glassformer.data.normaliser import normalised
from glassformer.data.scripts import script
from glassformer.tools.doctor.patterns import JOINT, LOST, PATTERNS, hits
from glassformer.tools.doctor.report import Lengths, SideReport

__all__ = ["PLACES_KEPT", "FileCheck", "SideCheck", "Tally", "lengths"]

PLACES_KEPT = 5
_EXAMPLE_CHARS = 60
_ENOUGH_CASED = 200  # letters that have a case
_RARE = 0.002  # share of the cased letters


@dataclass
class Tally:
    """The number of places of a fault, the first line numbers, and the first example."""

    count: int = 0
    lines: list[int] = field(default_factory=list)
    example: str = ""

    def add(self, line: int, example: str = "", *, most: int = _EXAMPLE_CHARS) -> None:
        """Counts one place, at a ``line`` from 1; cuts an example to ``most`` characters."""
        if not self.count:
            self.example = example[:most]
        self.count += 1
        if len(self.lines) < PLACES_KEPT:
            self.lines.append(line)

    def add_run(self, lines: Sequence[int]) -> None:
        """Counts many places without an example."""
        self.count += len(lines)
        self.lines += lines[: PLACES_KEPT - len(self.lines)]


class FileCheck:
    """Reads any file to its end, and counts the faults of its bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self.tallies = {code: Tally() for code in ("invalid-utf8", "bom", "crlf", "cr-only")}
        self._lf = Tally()
        self._nul = Tally()
        self._convert = ""  # the command that converts UTF-16

    def read(self) -> Iterator[str]:
        """The text of each line; a ``?`` stands for bytes that are not UTF-8."""
        for block in raw_blocks(self.path):
            raw = block.split(b"\n")
            # The first line may have a byte order mark.
            if self.lines > 0 and b"\r" not in block and b"\0" not in block:
                with suppress(UnicodeDecodeError):
                    texts = block.decode().split("\n")
                    self._lf.add_run(range(self.lines + 1, self.lines + len(raw) + 1))
                    self.lines += len(raw)
                    yield from texts
                    continue
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
            return decode_line(raw, first=first, errors="replace").replace(LOST, "?")

    def findings(self) -> dict[str, Tally]:
        """The faults of the whole file, after :meth:`read` has given the last line."""
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
        """The tally of the rarer line end, if the file has both LF and CR LF."""
        crlf, lf = self.tallies["crlf"], self._lf
        # The last line of a file may have no line end.
        if lf.count == 1 and lf.lines == [self.lines]:
            return Tally()
        return min(crlf, lf, key=lambda tally: tally.count)


class SideCheck:
    """The lengths, characters and suspicious places of the texts of one side."""

    def __init__(self) -> None:
        self.chars: Counter[int] = Counter()  # number of texts by length
        self.words: Counter[int] = Counter()
        self.characters: Counter[str] = Counter()
        self.tallies = {code: Tally() for code in (*PATTERNS, "not-nfc")}

    def add(self, texts: Sequence[str], lines: Sequence[int]) -> list[str]:
        """Counts the texts of some lines; returns the texts in training's normalised form."""
        plain = list(map(normalised, texts))
        self.chars.update(map(len, plain))
        self.words.update([len(text.split()) for text in plain])
        together = JOINT.join(texts) + JOINT
        counts = np.bincount(np.frombuffer(together.encode("utf-32-le"), dtype="<u4"))
        counts[ord(JOINT)] = 0
        present = np.flatnonzero(counts).tolist()
        self.characters.update({chr(code): int(counts[code]) for code in present})
        ends = np.cumsum([len(text) + 1 for text in texts])
        last: dict[str, int] = {}
        for code, match in hits(together, "".join(map(chr, present))):
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

    def side(self) -> SideReport:
        """The tables of the side."""
        return SideReport(lengths(self.chars), lengths(self.words), self._scripts())

    def _scripts(self) -> dict[str, float]:
        """Each script's share of the letters, the largest first."""
        counts: Counter[str | None] = Counter()
        for character, count in self.characters.items():
            counts[script(character)] += count
        del counts[None]
        total = counts.total()
        return {name: round(count / total, 6) for name, count in counts.most_common() if name}

    def findings(self) -> dict[str, Tally]:
        """The tallies, and a finding if the whole side has one case."""
        case = self._one_case()
        return self.tallies | ({case: Tally(self.chars.total())} if case else {})

    def _one_case(self) -> str | None:
        """``lower-case`` or ``upper-case`` if hardly any letter has the other case."""
        letters = upper = lower = 0
        for character, count in self.characters.items():
            letters += count * character.isalpha()
            if character.title() != character.lower():  # Georgian letters have no title case
                upper += count * character.isupper()
                lower += count * character.islower()
        if upper + lower < max(_ENOUGH_CASED, letters / 2):
            return None
        if upper <= _RARE * (upper + lower):
            return "lower-case"
        return "upper-case" if lower <= _RARE * (upper + lower) else None


def lengths(counts: Counter[int]) -> Lengths | None:
    """The table of lengths from the count of each length; ``None`` without counts.

    >>> lengths(Counter([3, 1, 2]))
    Lengths(min=1, median=2, mean=2.0, p95=3, p99=3, max=3)
    """
    if not counts:
        return None
    values, numbers = (np.array(column) for column in zip(*sorted(counts.items()), strict=True))
    below = np.cumsum(numbers)  # by length, the number of texts up to that length
    places = np.searchsorted(100 * below, np.array([50, 95, 99]) * below[-1])
    median, p95, p99 = values[places].tolist()
    mean = round(float(values @ numbers / below[-1]), 2)
    return Lengths(int(values[0]), median, mean, p95, p99, int(values[-1]))
