"""What is wrong with a corpus, and what training would do with it.

Reading (:func:`corpus.read_pairs`) stops at the first fault. The doctor goes on to the end, counts
every kind of fault, and keeps the first places and one example of each. Its memory is 36 bytes for
a pair, whatever the sentences: two lengths and a 64-bit hash for each side, and the line number.
Equal hashes are taken for equal sentences; among a hundred million, that is wrong for less than
one pair in a thousand corpora.

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "a.tsv")
...     _ = path.write_text("Hallo\\tHello\\nWelt\\t\\n", encoding="utf-8")
...     report = examine(CorpusFiles(path))
>>> report.ok, report.kept, report.dropped
(True, 1, {'empty': 1, 'long': 0, 'ratio': 0})
"""

import re
from array import array
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from glassformer.data.corpus import Filter, Limits, Pair
from glassformer.data.records import file_format, split_record
from glassformer.data.report import MEANINGS, CorpusFiles, Finding, Overlap, Part, Report, Side
from glassformer.data.text_checks import FileCheck, SideCheck, Tally, lengths
from glassformer.errors import InputError

__all__ = ["CorpusFiles", "Report", "examine"]

_QUOTED = re.compile('".+"')


def examine(
    train: CorpusFiles,
    *,
    valid: CorpusFiles | None = None,
    test: CorpusFiles | None = None,
    limits: Limits | None = None,
) -> Report:
    """Reads the parts of a corpus to their ends and reports what is in them.

    ``ok`` is whether training could go on. ``kept`` and ``dropped`` are what it would do with the
    training pairs.

    Raises:
        InputError: a file cannot be read at all: missing, empty, a damaged gzip file.
        UsageError: a format does not fit its files.
    """
    given = {"train": train, "valid": valid, "test": test}
    checks = {
        name: _PartCheck(name, files, limits or Limits())
        for name, files in given.items()
        if files is not None
    }
    for check in checks.values():
        check.read()
    findings = [finding for check in checks.values() for finding in check.findings()]
    used = checks["train"].filter
    if used.kept == 0:
        findings.append(checks["train"].finding("nothing-left", Tally(1)))
    overlaps = _overlaps(checks)
    findings += [
        checks[found.part].finding(
            "overlap", Tally(found.pairs, found.lines), f"{found.part} and {found.within}"
        )
        for found in overlaps
        if found.pairs
    ]
    order = list(MEANINGS)
    return Report(
        ok=all(finding.severity != "error" for finding in findings),
        kept=used.kept,
        dropped=used.counts,
        parts={name: check.part() for name, check in checks.items()},
        overlaps=overlaps,
        findings=sorted(findings, key=lambda finding: order.index(finding.code)),
    )


class _PartCheck:
    """Reads one part: its bytes by file, its text by side, its pairs here."""

    def __init__(self, name: str, files: CorpusFiles, limits: Limits) -> None:
        self.name = name
        self.format = file_format(files.source, files.target, format=files.format)
        self.keys = files.keys
        paths = [files.source] if files.target is None else [files.source, files.target]
        self.files = [FileCheck(path) for path in paths]
        self.source, self.target = SideCheck(), SideCheck()
        self.filter = Filter(limits)
        self.lines = array("I")  # of the pairs
        self.surplus = array("I")  # lengths of the lines without a partner
        codes = ("unpaired", "malformed", "identical", "quoted", *self.filter.counts)
        self.found = {code: Tally() for code in codes}

    def read(self) -> None:
        """Reads all; what was found stands in the attributes."""
        if self.format == "lines":
            self._read_two()
        else:
            self._read_one()

    def _read_two(self) -> None:
        both = zip_longest(*(file.read() for file in self.files))
        for line, (source, target) in enumerate(both, start=1):
            if source is None or target is None:
                text, _ = source or target
                self.found["unpaired"].add(line)
                self.surplus.append(len(text.strip()))
            else:
                self._add(Pair(source[0], target[0]), line, valid=(source[1], target[1]))
        if self.surplus:
            self._locate_slip()

    def _read_one(self) -> None:
        for line, (text, valid) in enumerate(self.files[0].read(), start=1):
            try:
                pair = Pair(*split_record(text, self.format, keys=self.keys))
            except InputError as error:
                self.found["malformed"].add(line, f"{error}")
            else:
                self._add(pair, line, valid=(valid, valid))

    def _add(self, pair: Pair, line: int, *, valid: tuple[bool, bool]) -> None:
        self.lines.append(line)
        self.source.add(pair.source, line=line, valid=valid[0])
        self.target.add(pair.target, line=line, valid=valid[1])
        reason = self.filter.reason(pair)
        if reason:
            self.found[reason].add(line, f"{pair.source[:25]!r}, {pair.target[:25]!r}")
        elif pair.source.strip() == pair.target.strip():
            self.found["identical"].add(line, pair.source.strip())
        if self.format == "tsv" and any(_QUOTED.fullmatch(text) for text in pair):
            self.found["quoted"].add(line, pair.source)

    def _locate_slip(self) -> None:
        """Puts where the files part in place of the line after the shorter file's end."""
        longer = max(self.files, key=lambda file: file.lines)
        side, other = (self.source, self.target)[:: 1 if longer is self.files[0] else -1]
        line = _slip(_numbers(side.chars + self.surplus), _numbers(other.chars))
        first, second = self.files
        counts = f"{first.path.name} {first.lines:,} lines, {second.path.name} {second.lines:,}"
        self.found["unpaired"] = Tally(
            len(self.surplus), [line], f"{counts}; by their lengths they part at about line {line}"
        )

    def part(self) -> Part:
        """The counts and tables."""
        return Part(
            files=[str(file.path) for file in self.files],
            format=self.format,
            lines=[file.lines for file in self.files],
            pairs=len(self.lines),
            source=_side(self.source),
            target=_side(self.target),
        )

    def finding(self, code: str, tally: Tally, where: str = "") -> Finding:
        """What a tally means; ``where`` is the part itself unless it is told."""
        severity, meaning = MEANINGS[code]
        return Finding(
            code, severity, self.name, where or self.name,
            tally.count, tally.lines, tally.example, meaning,
        )  # fmt: skip

    def findings(self) -> list[Finding]:
        """All that was counted, but for the overlap."""
        tallies = [("", code, tally) for code, tally in self.found.items()]
        tallies.append(("", "repeated", self._repeated()))
        for file in self.files:
            mixed = file.mixed_line_ends()
            tallies.append((str(file.path), "mixed-line-ends", mixed))
            for code, tally in file.found.items():
                if not (code == "crlf" and mixed.count):
                    tallies.append((str(file.path), code, tally))
        names = [str(file.path) for file in self.files]
        if len(names) == 1:
            names = [f"{names[0]} (source)", f"{names[0]} (target)"]
        for name, side in zip(names, (self.source, self.target), strict=True):
            tallies += [(name, code, tally) for code, tally in side.found.items()]
        return [self.finding(code, tally, where) for where, code, tally in tallies if tally.count]

    def _repeated(self) -> Tally:
        filled = np.flatnonzero(self.filled())
        _, first = np.unique(self.pair_hashes()[filled], return_index=True)
        again = np.delete(filled, first)
        return Tally(len(again), _lines_at(self, again))

    def filled(self) -> NDArray[np.bool_]:
        """Which pairs have text on both sides."""
        return (_numbers(self.source.chars) > 0) & (_numbers(self.target.chars) > 0)

    def pair_hashes(self) -> NDArray[np.uint64]:
        """A hash of each pair, from those of its sides."""
        source, target = _hashes(self.source), _hashes(self.target)
        return source * np.uint64(0x9E3779B97F4A7C15) + target


def _overlaps(checks: dict[str, _PartCheck]) -> list[Overlap]:
    """What each later part has in common with each earlier one; empty sides do not count."""
    names = list(checks)
    found = []
    for place, part in enumerate(names):
        for within in names[:place]:
            new, old = checks[part], checks[within]
            kept, known = new.filled(), old.filled()
            pairs = kept & np.isin(new.pair_hashes(), old.pair_hashes()[known])
            sources = kept & np.isin(_hashes(new.source), _hashes(old.source)[known])
            targets = kept & np.isin(_hashes(new.target), _hashes(old.target)[known])
            both, left, right = (int(hits.sum()) for hits in (pairs, sources, targets))
            lines = _lines_at(new, np.flatnonzero(pairs))
            found.append(Overlap(part, within, both, left, right, lines))
    return found


def _slip(longer: NDArray[np.uint32], shorter: NDArray[np.uint32]) -> int:
    """The line from which the longer file has lines too many, told by the lengths.

    A sentence and its translation are about equally long. For each line k, take the lines before k
    as they stand and those from k on moved by the surplus; the k at which the log lengths, each
    less its file's median, agree best is where the files part. Gale and Church (1993) align
    sentences on the same ground.
    """
    extra = len(longer) - len(shorter)
    small, large = np.log1p(shorter), np.log1p(longer)
    small, large = small - np.median(small), large - np.median(large)
    straight = np.abs(large[: len(shorter)] - small)
    moved = np.abs(large[extra:] - small)
    gain = np.concatenate([[0.0], np.cumsum(straight - moved)])
    # Among equals the last, so that lines without evidence count as paired.
    return len(gain) - int(np.argmin(gain[::-1]))


def _side(side: SideCheck) -> Side:
    return Side(lengths(_numbers(side.chars)), lengths(_numbers(side.words)), side.scripts())


def _numbers(values: "array[int]") -> NDArray[np.uint32]:
    return np.frombuffer(values, dtype=np.uint32)


def _hashes(side: SideCheck) -> NDArray[np.uint64]:
    return np.frombuffer(side.hashes, dtype=np.int64).view(np.uint64)


def _lines_at(check: _PartCheck, rows: NDArray[np.intp]) -> list[int]:
    """The line numbers of the first of some pairs."""
    return [check.lines[row] for row in rows[:5]]
