"""Examines a corpus to its end, and reports its faults and the pairs that training would drop.

Reading (:func:`corpus.read_pairs`) stops at the first fault. The doctor goes on, counts every kind
of fault, and keeps the first places and one example of each. It takes a few thousand pairs at a
time and keeps no text of them. A training pair costs 8 bytes for its hash (:mod:`duplicates`) and 4
for its lengths (:mod:`alignment`), a pair of the other texts 36 in all. The search for duplicates
takes about twice as much.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from glassformer.data.corpus import Filter, Limits
from glassformer.data.doctor.alignment import Features, Shift, features, shifts, slip, unrelated
from glassformer.data.doctor.checks import FileCheck, SideCheck, Tally, lengths
from glassformer.data.doctor.duplicates import NONE, Known, folded, hashes, pair_hashes, repeats
from glassformer.data.doctor.headers import is_header
from glassformer.data.doctor.report import (
    COMMON,
    LIGHT,
    MEANINGS,
    CorpusFiles,
    Finding,
    Overlap,
    Part,
    Report,
    Side,
)
from glassformer.data.file_formats import file_format, split_record
from glassformer.data.protected import lost_spans
from glassformer.errors import InputError

__all__ = ["CorpusFiles", "Report", "examine"]

_QUOTED = re.compile('".+"')
_AT_ONCE = 1 << 19  # characters, about: a few thousand pairs
_ROW = 50  # characters that a pair counts besides its own: blank pairs take memory too
_MANY = 1_000  # characters of a side: about 250 subwords of four, the default of max_tokens
_KINDS = ("pairs", "sources", "targets", "near")
_ROWS_KEPT = 5
_MOSTLY_SAME, _LEAST_SAME = 0.5, 10  # share and number of pairs with the same text on both sides
_MANY_REPEATS, _LEAST_REPEATS = 0.1, 10  # share of the pairs, and number
_MANY_KNOWN = 0.1  # share of a part's sources
#: A part is swapped if its sides are by this factor nearer to the other sides of the training text.
_NEARER = 0.7
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
    findings += [finding for overlap in overlaps for finding in _leaks(overlap, checks)]
    findings += [
        check.finding("swapped", Tally(1))
        for check in later[1:]
        if _swapped(checks["train"], check)
    ]
    used = checks["train"].filter
    if used.kept == 0:
        findings.append(checks["train"].finding("nothing-left", Tally(1)))
    severities, codes = ["error", "warning", "note"], list(MEANINGS)
    findings.sort(key=lambda each: (severities.index(each.severity), codes.index(each.code)))
    return Report(
        ok=all(finding.severity != "error" for finding in findings),
        kept=used.kept,
        characters=used.characters,
        dropped=used.counts,
        parts={name: check.part() for name, check in checks.items()},
        overlaps=overlaps,
        findings=findings,
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
        # Length and mark of each line, 0 without a pair, and of the lines without a partner.
        self.features: tuple[list[Features], list[Features]] = ([], [])
        self.surplus = array("H")
        codes = ["unpaired", "malformed", "header", "identical", "lost-spans", "quoted"]
        codes += ["many-subwords", *self.filter.counts]
        self.tallies = {code: Tally() for code in codes}

    def read(self, searches: Sequence["_Search"]) -> None:
        """Reads the part; the results stand in the attributes, and in those of ``searches``."""
        rows = self._of_two_files() if self.format == "lines" else self._of_one_file()
        for portion in _portions(self._without_header(rows)):
            lines, sources, targets = map(list, zip(*portion, strict=True))
            left, right = self._add(sources, targets, lines)
            kinds = _KINDS if searches or "near" in self.hashes else _KINDS[:1]
            hashes_by_kind = _hashes(left, right, kinds)
            self._remember(hashes_by_kind, (left, right), lines)
            for search in searches:
                search.look(hashes_by_kind)
        if self.surplus:
            self._locate_slip()

    def _without_header(self, rows: Iterable[_Row]) -> Iterator[_Row]:
        for line, source, target in rows:
            if line == 1 and is_header(source, target):
                self.tallies["header"].add(1, f"{source!r}, {target!r}")
            else:
                yield line, source, target

    def _of_two_files(self) -> Iterator[_Row]:
        both = zip_longest(*(file.read() for file in self.files))
        for line, (source, target) in enumerate(both, start=1):
            if source is None or target is None:
                self.surplus.extend(features([(source or target or "").strip()]))
            else:
                yield line, source, target

    def _of_one_file(self) -> Iterator[_Row]:
        for line, text in enumerate(self.files[0].read(), start=1):
            try:
                source, target = split_record(text, self.format, keys=self.keys)
            except InputError as error:
                self.tallies["malformed"].add(line, f"{error}")
                if self.format == "tsv" and _is_quoted_record(text):
                    self.tallies["quoted"].add(line, text)
            else:
                yield line, source, target

    def _add(
        self, sources: list[str], targets: list[str], lines: list[int]
    ) -> tuple[list[str], list[str]]:
        """Examines some pairs; returns their sides as training normalises them."""
        self.pairs += len(lines)
        left, right = self.source.add(sources, lines), self.target.add(targets, lines)
        for source, target, line in zip(left, right, lines, strict=True):
            reason = self.filter.reason(len(source), len(target))
            if reason:
                self.tallies[reason].add(line, f"{source[:25]!r}, {target[:25]!r}")
                continue
            if lost := lost_spans(source, target):
                self.tallies["lost-spans"].add(line, f"{lost[0]!r} of {source[:25]!r}")
            if source == target:
                self.tallies["identical"].add(line, source)
            if max(len(source), len(target)) > _MANY:
                self.tallies["many-subwords"].add(line, f"{source[:25]!r}, {target[:25]!r}")
        if self.format == "tsv":
            for pair, line in zip(zip(sources, targets, strict=True), lines, strict=True):
                if any(_QUOTED.fullmatch(text) for text in pair):
                    self.tallies["quoted"].add(line, pair[0])
        return left, right

    def _remember(
        self, hashes_by_kind: _Hashes, sides: tuple[list[str], list[str]], lines: list[int]
    ) -> None:
        """Keeps the hashes and lengths of some pairs by line."""
        rows = np.asarray(lines) - self.hashed - 1
        for kind, blocks in self.hashes.items():
            by_line = np.full(lines[-1] - self.hashed, NONE)
            by_line[rows] = hashes_by_kind[kind]
            blocks.append(by_line)
        for blocks_of_side, texts in zip(self.features, sides, strict=True):
            features_by_line = np.zeros(lines[-1] - self.hashed, np.uint16)
            features_by_line[rows] = features(texts)
            blocks_of_side.append(features_by_line)
        self.hashed = lines[-1]

    def _features(self) -> tuple[Features, Features]:
        """The features of each line; they are one array from now on."""
        source, target = (
            np.concatenate([*side, np.array([], np.uint16)]) for side in self.features
        )
        self.features = ([source], [target])
        return source, target

    def _locate_slip(self) -> None:
        """Counts the lines without a partner, and names the line where the files part."""
        first, second = self.files
        sides = self._features()
        longer, shorter = sides if first.lines > second.lines else sides[::-1]
        line = slip(np.concatenate([longer, self.surplus]), shorter)
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
        if code in LIGHT and tally.count < COMMON * self.pairs:
            severity = "note"
        counts = asdict(tally)
        where = where or self.name
        return Finding(code, severity, self.name, where, meaning=meaning, **counts)

    def findings(self) -> list[Finding]:
        """Every fault that occurs in this part alone."""
        tallies = [("", code, tally) for code, tally in self._pair_tallies().items()]
        for file in self.files:
            tallies += [(str(file.path), code, tally) for code, tally in file.findings().items()]
        names = [str(file.path) for file in self.files]
        if len(names) == 1:
            names = [f"{names[0]} (source)", f"{names[0]} (target)"]
        for name, side in zip(names, (self.source, self.target), strict=True):
            tallies += [(name, code, tally) for code, tally in side.findings().items()]
        return [self.finding(code, tally, where) for where, code, tally in tallies if tally.count]

    def _pair_tallies(self) -> dict[str, Tally]:
        """The tallies of the pairs, each under the code that fits its number."""
        tallies = self.tallies | self._misaligned()
        rows = np.flatnonzero(repeats(self.kept("pairs")))
        many = len(rows) >= max(_LEAST_REPEATS, _MANY_REPEATS * self.pairs)
        tallies["many-repeats" if many else "repeated"] = _tally(rows)
        if self._same():
            tallies["same-text"] = tallies.pop("identical")
        if tallies["malformed"].count and tallies["quoted"].count:
            tallies["csv-quotes"] = tallies.pop("quoted")
        return tallies

    def _same(self) -> bool:
        """Whether the sides are one text."""
        identical = self.tallies["identical"].count
        many = identical >= max(_LEAST_SAME, _MOSTLY_SAME * self.filter.kept)
        paths = [file.path for file in self.files]
        return many or bool(identical and len(paths) == 2 and paths[0].samefile(paths[1]))

    def _misaligned(self) -> dict[str, Tally]:
        """Whether lines belong to other lines; if lines have no partner, that is found already."""
        sides = self._features()
        if self.surplus:
            return {}
        stretches = shifts(*sides)
        if stretches:
            lines = sum(shift.last - shift.first + 1 for shift in stretches)
            first = stretches[:_ROWS_KEPT]
            example = "; ".join(_describe(shift, len(sides[0])) for shift in first)
            return {"shifted": Tally(lines, [shift.first for shift in first], example)}
        return {"unrelated": Tally(int(unrelated(*sides)))}

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
        seen["near"] &= ~seen["pairs"]
        counts = {kind: int(hits.sum()) for kind, hits in seen.items()}
        lines, near = (_tally(np.flatnonzero(seen[kind])).lines for kind in ("pairs", "near"))
        return Overlap(self.part.name, self.within.name, lines=lines, near_lines=near, **counts)


def _leaks(overlap: Overlap, checks: Mapping[str, _PartCheck]) -> Iterator[Finding]:
    """The findings of an overlap."""
    part = checks[overlap.part]
    known = overlap.sources - overlap.pairs - overlap.near
    tallies = {
        "overlap": Tally(overlap.pairs, overlap.lines),
        "near-overlap": Tally(overlap.near, overlap.near_lines),
        "known-sources": Tally(known if known >= _MANY_KNOWN * part.pairs else 0),
    }
    for code, tally in tallies.items():
        if tally.count:
            yield part.finding(code, tally, f"{overlap.part} and {overlap.within}")


def _swapped(train: _PartCheck, part: _PartCheck) -> bool:
    """Whether the part's source has the characters of the training target, and the other way."""
    straight = train.source.distance(part.source) + train.target.distance(part.target)
    crossed = train.source.distance(part.target) + train.target.distance(part.source)
    return crossed < _NEARER * straight


def _is_quoted_record(line: str) -> bool:
    """Whether a line holds a pair if its quotes are csv quotes."""
    try:
        split_record(line, "tsv-quoted")
    except InputError:
        return False
    return True


def _describe(shift: Shift, lines: int) -> str:
    """A shift in words."""
    by = f"n {'+' if shift.offset > 0 else '-'} {abs(shift.offset)}"
    end = "to the end" if shift.last == lines else f"to about line {shift.last:,}"
    return f"from about line {shift.first:,} {end}, source line n belongs to target line {by}"


def _tally(rows: NDArray[np.intp]) -> Tally:
    """The tally of some rows, which count from 0."""
    return Tally(len(rows), [row + 1 for row in rows[:_ROWS_KEPT].tolist()])


def _hashes(sources: list[str], targets: list[str], kinds: Sequence[str]) -> _Hashes:
    """The hashes of some pairs; NONE where a side is empty."""
    left, right = hashes(sources), hashes(targets)
    pairs = pair_hashes(left, right)
    filled = pairs != NONE
    table = {"pairs": pairs, "sources": left * filled, "targets": right * filled}
    if "near" in kinds:
        table["near"] = pair_hashes(
            *(hashes(list(map(folded, side))) for side in (sources, targets))
        )
    return table


def _portions(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """The rows in portions of about ``_AT_ONCE`` characters."""
    portion: list[_Row] = []
    characters = 0
    for row in rows:
        portion.append(row)
        characters += len(row[1]) + len(row[2]) + _ROW
        if characters >= _AT_ONCE:
            yield portion
            portion, characters = [], 0
    if portion:
        yield portion


def _side(side: SideCheck) -> Side:
    return Side(lengths(side.chars), lengths(side.words), side.scripts())
