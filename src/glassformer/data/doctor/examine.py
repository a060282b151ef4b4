"""Examines a corpus to its end, and reports its faults and the pairs that training would drop.

Reading (:func:`corpus.read_pairs`) stops at the first fault. The doctor goes on, counts every kind
of fault, and keeps the first places and one example of each. It takes a few thousand pairs at a
time and keeps no text of them. A training pair costs 8 bytes for its hash (:mod:`duplicates`), a
pair of the other texts 24. A pair of two files costs 4 more. The search for duplicates takes about
twice as much.

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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from glassformer.data.corpus import Filter, Limits
from glassformer.data.doctor.checks import FileCheck, SideCheck, Tally, lengths
from glassformer.data.doctor.duplicates import NONE, Known, hashes, pair_hashes, repeated
from glassformer.data.doctor.report import (
    MEANINGS,
    CorpusFiles,
    Finding,
    Overlap,
    Part,
    Report,
    Side,
)
from glassformer.data.file_formats import file_format, split_record
from glassformer.errors import InputError

__all__ = ["CorpusFiles", "Report", "examine"]

_QUOTED = re.compile('".+"')
_AT_ONCE = 1 << 19  # characters, about: a few thousand pairs
_LONGEST = 2**16 - 1  # greatest length that 16 bits hold
_MANY = 1_000  # characters of a side: about 250 subwords of four, the default of max_tokens
_KINDS = ("pairs", "sources", "targets")
_Hashes: TypeAlias = dict[str, NDArray[np.uint64]]
_Row: TypeAlias = tuple[int, str, str]  # line, source, target


def examine(
    train: CorpusFiles,
    *,
    valid: CorpusFiles | None = None,
    test: CorpusFiles | None = None,
    limits: Limits | None = None,
) -> Report:
    """Reads the parts of a corpus to their ends and reports their faults.

    ``ok``: training could go on. ``kept`` and ``dropped`` count the pairs that training would keep
    and drop.

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
    # The training text is the longest. It is read last, when the other texts' hashes are known.
    overlaps: list[Overlap] = []
    later: list[_PartCheck] = []
    for check in reversed(checks.values()):
        searches = [_Search(part, check) for part in later]
        check.read(searches)
        overlaps = [search.result() for search in searches] + overlaps
        later.insert(0, check)
    findings = [finding for check in checks.values() for finding in check.findings()]
    used = checks["train"].filter
    if used.kept == 0:
        findings.append(checks["train"].finding("nothing-left", Tally(1)))
    findings += [
        checks[overlap.part].finding(
            "overlap", Tally(overlap.pairs, overlap.lines), f"{overlap.part} and {overlap.within}"
        )
        for overlap in overlaps
        if overlap.pairs
    ]
    order = list(MEANINGS)
    return Report(
        ok=all(finding.severity != "error" for finding in findings),
        kept=used.kept,
        characters=used.characters,
        dropped=used.counts,
        parts={name: check.part() for name, check in checks.items()},
        overlaps=overlaps,
        findings=sorted(findings, key=lambda finding: order.index(finding.code)),
    )


class _PartCheck:
    """Examines one part, such as ``train``: its pairs here, its files and sides by their checks."""

    def __init__(self, name: str, files: CorpusFiles, limits: Limits) -> None:
        self.name = name
        self.format = file_format(files.source, files.target, format=files.format)
        self.keys = files.keys
        paths = [files.source] if files.target is None else [files.source, files.target]
        self.files = [FileCheck(path) for path in paths]
        self.source, self.target = SideCheck(), SideCheck()
        self.filter = Filter(limits)
        self.pairs = 0
        # Hashes by line, in blocks; NONE for a line without a whole pair.
        self.hashes: dict[str, list[NDArray[np.uint64]]] = {
            kind: [] for kind in (_KINDS[:1] if name == "train" else _KINDS)
        }
        self.hashed = 0  # the last line that has its hash
        # Characters of each line of two files, and of the lines without a partner.
        self.sizes: tuple[list[NDArray[np.uint16]], list[NDArray[np.uint16]]] = ([], [])
        self.surplus = array("H")
        codes = ("unpaired", "malformed", "identical", "quoted", "many-subwords")
        self.tallies = {code: Tally() for code in (*codes, *self.filter.counts)}

    def read(self, searches: Sequence["_Search"]) -> None:
        """Reads the part; the results stand in the attributes, and in those of ``searches``."""
        rows = self._of_two_files() if self.format == "lines" else self._of_one_file()
        for portion in _portions(rows):
            lines, sources, targets = map(list, zip(*portion, strict=True))
            hashes_by_kind = self._add(sources, targets, lines)
            self._remember(hashes_by_kind, lines)
            for search in searches:
                search.look(hashes_by_kind)
        if self.surplus:
            self._locate_slip()

    def _of_two_files(self) -> Iterator[_Row]:
        both = zip_longest(*(file.read() for file in self.files))
        for line, (source, target) in enumerate(both, start=1):
            if source is None or target is None:
                self.surplus.append(_size(source or target or ""))
            else:
                yield line, source, target

    def _of_one_file(self) -> Iterator[_Row]:
        for line, text in enumerate(self.files[0].read(), start=1):
            try:
                source, target = split_record(text, self.format, keys=self.keys)
            except InputError as error:
                self.tallies["malformed"].add(line, f"{error}")
            else:
                yield line, source, target

    def _add(self, sources: list[str], targets: list[str], lines: list[int]) -> _Hashes:
        """Examines some pairs; returns their hashes."""
        self.pairs += len(lines)
        left, right = self.source.add(sources, lines), self.target.add(targets, lines)
        for source, target, line in zip(left, right, lines, strict=True):
            reason = self.filter.reason(len(source), len(target))
            if reason:
                self.tallies[reason].add(line, f"{source[:25]!r}, {target[:25]!r}")
                continue
            if source == target:
                self.tallies["identical"].add(line, source)
            if max(len(source), len(target)) > _MANY:
                self.tallies["many-subwords"].add(line, f"{source[:25]!r}, {target[:25]!r}")
        if self.format == "lines":
            for sizes, texts in zip(self.sizes, (left, right), strict=True):
                sizes.append(np.fromiter(map(_size, texts), np.uint16, len(texts)))
        elif self.format == "tsv":
            for pair, line in zip(zip(sources, targets, strict=True), lines, strict=True):
                if any(_QUOTED.fullmatch(text) for text in pair):
                    self.tallies["quoted"].add(line, pair[0])
        of_left, of_right = hashes(left), hashes(right)
        of_pairs = pair_hashes(of_left, of_right)
        filled = of_pairs != NONE
        return dict(zip(_KINDS, (of_pairs, of_left * filled, of_right * filled), strict=True))

    def _remember(self, hashes_by_kind: _Hashes, lines: list[int]) -> None:
        for kind, blocks in self.hashes.items():
            by_line = np.full(lines[-1] - self.hashed, NONE)
            by_line[np.asarray(lines) - self.hashed - 1] = hashes_by_kind[kind]
            blocks.append(by_line)
        self.hashed = lines[-1]

    def _locate_slip(self) -> None:
        """Counts the lines without a partner, and names the line where the files part."""
        first, second = self.files
        sizes = [np.concatenate([*side, np.array([], np.uint16)]) for side in self.sizes]
        longer, shorter = sizes if first.lines > second.lines else sizes[::-1]
        line = _slip(np.concatenate([longer, self.surplus]), shorter)
        counts = f"{first.path.name} {first.lines:,} lines, {second.path.name} {second.lines:,}"
        self.tallies["unpaired"] = Tally(
            len(self.surplus),
            [line],
            f"{counts}; by their lines' lengths, they part at line {line} or near it",
        )

    def part(self) -> Part:
        """The counts and tables."""
        return Part(
            files=[str(file.path) for file in self.files],
            format=self.format,
            lines=[file.lines for file in self.files],
            pairs=self.pairs,
            source=_side(self.source),
            target=_side(self.target),
        )

    def finding(self, code: str, tally: Tally, where: str = "") -> Finding:
        """The finding of a tally; ``where`` is the part if it is not given."""
        severity, meaning = MEANINGS[code]
        counts = asdict(tally)
        where = where or self.name
        return Finding(code, severity, self.name, where, meaning=meaning, **counts)

    def findings(self) -> list[Finding]:
        """Every fault that occurs, but for overlaps."""
        tallies = [("", code, tally) for code, tally in self.tallies.items()]
        tallies.append(("", "repeated", self._repeated()))
        for file in self.files:
            mixed = file.mixed_line_ends()
            tallies.append((str(file.path), "mixed-line-ends", mixed))
            for code, tally in file.tallies.items():
                if not (code == "crlf" and mixed.count):
                    tallies.append((str(file.path), code, tally))
        names = [str(file.path) for file in self.files]
        if len(names) == 1:
            names = [f"{names[0]} (source)", f"{names[0]} (target)"]
        for name, side in zip(names, (self.source, self.target), strict=True):
            tallies += [(name, code, tally) for code, tally in side.tallies.items()]
        return [self.finding(code, tally, where) for where, code, tally in tallies if tally.count]

    def _repeated(self) -> Tally:
        times, rows = repeated(self.kept("pairs"))
        return Tally(times, [row + 1 for row in rows])

    def kept(self, kind: str) -> NDArray[np.uint64]:
        """The hashes of one kind, by line."""
        whole = np.concatenate([*self.hashes[kind], np.array([], np.uint64)])
        self.hashes[kind] = [whole]
        return whole


class _Search:
    """Searches an earlier part, while it is read, for the pairs and sides of one part."""

    def __init__(self, part: _PartCheck, within: _PartCheck) -> None:
        self.part, self.within = part, within
        self.known = {kind: Known(part.kept(kind)) for kind in _KINDS}

    def look(self, hashes_by_kind: _Hashes) -> None:
        """Takes the hashes of some pairs of the earlier part."""
        for kind, known in self.known.items():
            known.see(hashes_by_kind[kind])

    def result(self) -> Overlap:
        """The overlap; empty sides do not count."""
        seen = {kind: known.seen(self.part.kept(kind)) for kind, known in self.known.items()}
        counts = {kind: int(hits.sum()) for kind, hits in seen.items()}
        lines = [row + 1 for row in np.flatnonzero(seen["pairs"])[:5].tolist()]
        return Overlap(self.part.name, self.within.name, lines=lines, **counts)


def _portions(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """The rows in portions of about ``_AT_ONCE`` characters."""
    portion: list[_Row] = []
    characters = 0
    for row in rows:
        portion.append(row)
        characters += len(row[1]) + len(row[2])
        if characters >= _AT_ONCE:
            yield portion
            portion, characters = [], 0
    if portion:
        yield portion


def _size(text: str) -> int:
    return min(len(text.strip()), _LONGEST)


def _slip(longer: NDArray[np.uint16], shorter: NDArray[np.uint16]) -> int:
    """The line from which the longer file has surplus lines, judged by the lengths of all lines.

    A sentence and its translation are about equally long. For each line k, the lines before k are
    compared as they stand, the lines from k on moved by the surplus. The files part at the k whose
    log lengths, each less its file's median, agree best. Gale and Church (1993) align sentences by
    the same rule.
    """
    extra = len(longer) - len(shorter)
    small, large = np.log1p(shorter), np.log1p(longer)
    small, large = small - np.median(small), large - np.median(large)
    straight = np.abs(large[: len(shorter)] - small)
    moved = np.abs(large[extra:] - small)
    gain = np.concatenate([[0.0], np.cumsum(straight - moved, dtype=float)])
    # Among equals the last, so that lines without evidence count as paired.
    return len(gain) - int(np.argmin(gain[::-1]))


def _side(side: SideCheck) -> Side:
    return Side(lengths(side.chars), lengths(side.words), side.scripts())
