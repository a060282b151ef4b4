"""Examines a corpus to its end, and reports its faults and the pairs that training would drop.

Training's reader (:func:`corpus.read_pairs`) stops at the first fault. The doctor goes on, counts
every kind of fault, and keeps its first places and one example. The doctor takes a few thousand
pairs at a time and keeps no text. A training pair costs 8 bytes for a hash (:mod:`duplicates`) and
4 bytes for lengths (:mod:`alignment`). A validation or test pair costs 28 bytes. The search for
duplicates takes about twice as much memory.

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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from itertools import zip_longest
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from glassformer.data.corpus import Filter, Limits
from glassformer.data.duplicates import NONE, Known, hashes, pair_hashes, repeats
from glassformer.data.file_formats import file_format, split_record
from glassformer.data.known import kinds_of
from glassformer.data.parallel_lines import (
    Features,
    Shift,
    features,
    many_equal,
    shifts,
    slip,
    unrelated,
)
from glassformer.data.protected import protected_spans
from glassformer.support.errors import InputError, counted
from glassformer.tools.doctor.checks import PLACES_KEPT, FileCheck, SideCheck, Tally
from glassformer.tools.doctor.report import (
    COMMON,
    LIGHT,
    MEANINGS,
    CorpusFiles,
    Finding,
    Overlap,
    PartReport,
    Report,
)

__all__ = ["CorpusFiles", "Report", "examine"]

_QUOTED = re.compile('".+"')
_AT_ONCE = 1 << 19  # characters of a portion of a few thousand pairs
_ROW = 50  # characters to add for each pair, because blank pairs take memory too
_MANY = 1_000  # characters of a side; about 250 subwords of four, the default of max_tokens
_KINDS = ("pairs", "sources", "targets")
_ROWS_KEPT = 5
_MANY_REPEATS, _LEAST_REPEATS = 0.1, 10  # share of the pairs, and number
_MANY_KNOWN = 0.1  # share of a part's sources
_ALWAYS = ("placeholder %", "placeholder {")  # kinds whose losses are faults, however many
# Kinds that people translate, join to words or write in another way.
_NAMES = frozenset(["code", "identifier", "emphasis", "name", "reference"])
_Hashes: TypeAlias = dict[str, NDArray[np.uint64]]
_Row: TypeAlias = tuple[int, str, str]  # line, source, target


def examine(
    train: CorpusFiles,
    *,
    valid: CorpusFiles | None = None,
    test: CorpusFiles | None = None,
    limits: Limits | None = None,
) -> Report:
    """Reads each part of a corpus to the end and reports the faults.

    ``ok`` of the report says that training could go on. ``kept`` and ``dropped`` count the pairs
    that training would keep and drop.

    Raises:
        InputError: a file is missing, empty or a damaged gzip file.
        UsageError: a format does not fit the files of the format.
    """
    files_by_part = {"train": train, "valid": valid, "test": test}
    checks = [_PartCheck(name, files, limits) for name, files in files_by_part.items() if files]
    # The training text is the longest. The doctor reads it last, and first hashes other texts.
    searches: list[_Search] = []
    for place, check in reversed([*enumerate(checks)]):
        of_check = [_Search(part, check) for part in checks[place + 1 :]]
        check.read(of_check)
        searches = of_check + searches
    findings = [finding for check in checks for finding in check.findings()]
    findings += [finding for search in searches for finding in search.findings()]
    used = checks[0].filter
    if used.kept == 0:
        findings.append(checks[0].finding("nothing-left", Tally(1)))
    severities, codes = [severity for severity, _ in MEANINGS.values()], list(MEANINGS)
    findings.sort(key=lambda each: (severities.index(each.severity), codes.index(each.code)))
    return Report(
        ok=all(finding.severity != "error" for finding in findings),
        kept=used.kept,
        characters=used.characters,
        dropped=used.counts,
        parts={check.name: check.part() for check in checks},
        overlaps=[search.overlap for search in searches],
        findings=findings,
    )


class _PartCheck:
    """Examines the pairs of one part, such as ``train``; other checks examine files and sides."""

    def __init__(self, name: str, files: CorpusFiles, limits: Limits | None) -> None:
        self.name, self.keys = name, files.keys
        self.format = file_format(files.source, files.target, format=files.format)
        self.files = [FileCheck(path) for path in files.paths]
        self.source, self.target = SideCheck(), SideCheck()
        self.filter = Filter(limits)
        self.pairs = 0
        # By line, hashes (NONE without a whole pair) and features of each side (0 without a pair).
        self.hashes = {kind: array("Q") for kind in (_KINDS[:1] if name == "train" else _KINDS)}
        self.features = (array("H"), array("H"))
        self.noted = 0  # the last line with hashes and features
        self.surplus = array("H")  # features of the lines without a partner
        self.kinds, self.copied = Counter[str](), Counter[str]()  # of spans: pairs, as Known counts
        self.lost = defaultdict[str, Tally](Tally)  # pairs whose target has fewer spans of the kind
        codes = ["malformed", "identical", "quoted"]
        codes += ["many-subwords", *self.filter.counts]
        self.tallies = {code: Tally() for code in codes}

    def read(self, searches: Sequence["_Search"]) -> None:
        """Reads the part; puts the results into attributes and into ``searches``."""
        rows = self._of_two_files() if self.format == "lines" else self._of_one_file()
        for portion in _portions(rows):
            lines, sources, targets = map(list, zip(*portion, strict=True))
            left, right = self._add(sources, targets, lines)
            hashes_by_kind = _hashes(left, right)
            self._note(hashes_by_kind, (left, right), lines)
            for search in searches:
                search.look(hashes_by_kind)

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
                self.tallies["malformed"].add(
                    line, f"{error}", most=300
                )  # long enough for the remedy
                if self.format == "tsv":
                    with suppress(InputError):
                        split_record(text, "tsv-quoted")
                        self.tallies["quoted"].add(line, text)
            else:
                yield line, source, target

    def _add(
        self, sources: list[str], targets: list[str], lines: list[int]
    ) -> tuple[list[str], list[str]]:
        """Examines some pairs; returns both sides in training's normalised form."""
        self.pairs += len(lines)
        left, right = self.source.add(sources, lines), self.target.add(targets, lines)
        for source, target, line in zip(left, right, lines, strict=True):
            if self.format == "tsv" and any(map(_QUOTED.fullmatch, (source, target))):
                self.tallies["quoted"].add(line, source)
            reason = self.filter.reason(len(source), len(target))
            if reason:
                self.tallies[reason].add(line, f"{source[:25]!r}, {target[:25]!r}")
                continue
            for kind, lost in kinds_of(source, target).items():
                self.kinds[kind] += 1
                self.copied[kind] += lost is None
                if lost is not None and _fewer(kind.split()[0], lost, source, target):
                    self.lost[kind].add(line, f"{lost!r} of {source[:25]!r}")
            if source == target:
                self.tallies["identical"].add(line, source)
            if max(len(source), len(target)) > _MANY:
                self.tallies["many-subwords"].add(line, f"{source[:25]!r}, {target[:25]!r}")
        return left, right

    def _note(
        self, hashes_by_kind: _Hashes, sides: tuple[list[str], list[str]], lines: list[int]
    ) -> None:
        """Keeps the hashes and features of some pairs by line."""
        rows, count = np.asarray(lines) - self.noted - 1, lines[-1] - self.noted
        for kind, hashes_by_line in self.hashes.items():
            hashes_by_line.frombytes(_by_line(hashes_by_kind[kind], rows, count))
        for features_by_line, texts in zip(self.features, sides, strict=True):
            features_by_line.frombytes(_by_line(features(texts), rows, count))
        self.noted = lines[-1]

    def part(self) -> PartReport:
        """The counts and tables."""
        return PartReport(
            files=[str(file.path) for file in self.files],
            format=self.format,
            lines=[file.lines for file in self.files],
            pairs=self.pairs,
            source=self.source.side(),
            target=self.target.side(),
        )

    def finding(self, code: str, tally: Tally, where: str = "") -> Finding:
        """The finding of a tally; an empty ``where`` stands for the whole part."""
        severity, meaning = MEANINGS[code]
        if code in LIGHT and tally.count < COMMON * self.pairs:
            severity = "note"
        places = asdict(tally)
        return Finding(code, severity, self.name, where or self.name, meaning=meaning, **places)

    def findings(self) -> list[Finding]:
        """The faults inside this part."""
        names = [str(file.path) for file in self.files]
        sides = names if len(names) == 2 else [f"{names[0]} (source)", f"{names[0]} (target)"]
        checks: list[FileCheck | SideCheck] = [*self.files, self.source, self.target]
        tables = [self._pair_tallies(), *(check.findings() for check in checks)]
        return [
            self.finding(code, tally, where)
            for where, table in zip(("", *names, *sides), tables, strict=True)
            for code, tally in table.items()
            if tally.count
        ]

    def _lost_spans(self) -> Tally:
        """The lost ``%s`` and ``{name}``, and the lost spans of kinds that most targets keep."""
        lost = [
            tally
            for kind, tally in self.lost.items()
            if kind in _ALWAYS or 2 * self.copied[kind] > self.kinds[kind]
        ]
        lines = sorted(line for tally in lost for line in tally.lines)
        first = min(lost, key=lambda tally: tally.lines, default=Tally())
        return Tally(sum(tally.count for tally in lost), lines[:PLACES_KEPT], first.example)

    def _pair_tallies(self) -> dict[str, Tally]:
        """The tallies of pairs by code; a tally above a limit gets the graver code."""
        tallies = self.tallies | self._misaligned() | {"lost-spans": self._lost_spans()}
        rows = np.flatnonzero(repeats(self.kept("pairs")))
        many = len(rows) >= max(_LEAST_REPEATS, _MANY_REPEATS * self.pairs)
        tallies["many-repeats" if many else "repeated"] = _tally(rows)
        if self._same():
            tallies["same-text"] = tallies.pop("identical")
        if tallies["malformed"].count and tallies["quoted"].count:
            tallies["csv-quotes"] = tallies.pop("quoted")
        return tallies

    def _same(self) -> bool:
        """Whether the source side is (nearly) the text of the target side."""
        identical = self.tallies["identical"].count
        many = identical >= many_equal(self.filter.kept)
        paths = [file.path for file in self.files]
        return many or bool(identical and len(paths) == 2 and paths[0].samefile(paths[1]))

    def _misaligned(self) -> dict[str, Tally]:
        """A tally of lines whose partner is missing or on another line; {} without such lines."""
        source, target = (np.asarray(side) for side in self.features)
        if self.surplus:
            return {"unpaired": self._unpaired(source, target)}
        stretches = shifts(source, target)
        if stretches:
            lines = sum(shift.last - shift.first + 1 for shift in stretches)
            first = stretches[:_ROWS_KEPT]
            example = "; ".join(_describe(shift, len(source)) for shift in first)
            return {"shifted": Tally(lines, [shift.first for shift in first], example)}
        code = unrelated(source, target)
        return {code: Tally(1)} if code else {}

    def _unpaired(self, *sides: Features) -> Tally:
        """The lines without a partner, and the first line at which the files no longer fit."""
        first, second = self.files
        longer, shorter = sides if first.lines > second.lines else sides[::-1]
        line = slip(np.concatenate([longer, self.surplus]), shorter)
        lines = counted(first.lines, "line")
        counts = f"{first.path.name} {lines}, {second.path.name} {second.lines:,}"
        example = f"{counts}; by the lengths of lines, they no longer fit from about line {line}"
        return Tally(len(self.surplus), [line], example)

    def kept(self, kind: str) -> NDArray[np.uint64]:
        """The hashes of one kind, by line."""
        return np.asarray(self.hashes[kind])


class _Search:
    """Searches an earlier part, ``within``, for pairs and sides of ``part`` during its reading."""

    def __init__(self, part: _PartCheck, within: _PartCheck) -> None:
        self.part, self.within = part, within
        self.known = {kind: Known(part.kept(kind)) for kind in _KINDS}

    def look(self, hashes_by_kind: _Hashes) -> None:
        """Notes the hashes of some pairs of the earlier part."""
        for kind, known in self.known.items():
            known.see(hashes_by_kind[kind])

    @cached_property
    def overlap(self) -> Overlap:
        """The overlap; empty sides do not count."""
        seen = {kind: known.seen(self.part.kept(kind)) for kind, known in self.known.items()}
        counts = {kind: int(hits.sum()) for kind, hits in seen.items()}
        lines = _tally(np.flatnonzero(seen["pairs"])).lines
        return Overlap(self.part.name, self.within.name, lines=lines, **counts)

    def findings(self) -> Iterator[Finding]:
        """The findings of the overlap."""
        overlap = self.overlap
        known = overlap.sources - overlap.pairs
        tallies = {
            "overlap": Tally(overlap.pairs, overlap.lines),
            "known-sources": Tally(known if known >= _MANY_KNOWN * self.part.pairs else 0),
        }
        for code, tally in tallies.items():
            if tally.count:
                yield self.part.finding(code, tally, f"{overlap.part} and {overlap.within}")


def _fewer(kind: str, span: str, source: str, target: str) -> bool:
    """Whether ``target`` has fewer copies of a span, and fewer spans of the kind.

    People translate the word in ``<file>``. They also translate names, such as ``file_name``.
    """
    if kind in _NAMES or target.count(span) >= source.count(span):
        return False
    sides = (protected_spans(side) for side in (source, target))
    before, after = (sum(each.kind == kind for each in side) for side in sides)
    return after < before


def _by_line(values: NDArray[np.generic], rows: NDArray[np.intp], count: int) -> bytes:
    """The bytes of an array of ``count`` lines with ``values`` at ``rows``, and 0 elsewhere."""
    by_line = np.zeros(count, values.dtype)
    by_line[rows] = values
    return by_line.tobytes()


def _describe(shift: Shift, lines: int) -> str:
    """A shift in words."""
    by = f"n {'+' if shift.offset > 0 else '-'} {abs(shift.offset)}"
    end = "to the end" if shift.last == lines else f"to about line {shift.last:,}"
    return f"from about line {shift.first:,} {end}, source line n belongs to target line {by}"


def _tally(rows: NDArray[np.intp]) -> Tally:
    """The tally of some rows, which count from 0."""
    return Tally(len(rows), [row + 1 for row in rows[:_ROWS_KEPT].tolist()])


def _hashes(sources: list[str], targets: list[str]) -> _Hashes:
    """The hashes of some pairs; NONE where a side is empty."""
    left, right = hashes(sources), hashes(targets)
    pairs = pair_hashes(left, right)
    filled = pairs != NONE
    return {"pairs": pairs, "sources": left * filled, "targets": right * filled}


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
