"""Reads pairs of sentences from files, and drops the pairs that training cannot use.

A corpus is two aligned text files, or one file with a pair on each line (:mod:`file_formats`). In
aligned files, line n of one file translates line n of the other file. :mod:`lines` reads the lines,
plain or gzipped, in bounded memory.

A :class:`Filter` drops and counts the pairs beyond the :class:`Limits`. Such a pair cannot be a
sentence and its translation. Training and the doctor use a filter.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from glassformer.data.file_formats import Format, file_format, join_record, split_record
from glassformer.data.lines import read_lines
from glassformer.support.errors import InputError, counted
from glassformer.support.files import open_atomically

__all__ = [
    "Filter",
    "Format",
    "Limits",
    "Pair",
    "read_lines",
    "read_pairs",
    "write_pairs",
]


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


def read_pairs(
    source: Path | str,
    target: Path | str | None = None,
    *,
    format: str | None = None,
    keys: tuple[str, str] = ("source", "target"),
) -> Iterator[Pair]:
    """The pairs of two aligned files, or of one file that holds both sides.

    Without ``format`` the file's name tells the format: ``.tsv``, ``.jsonl`` (also ``.json``,
    ``.ndjson``), with or without ``.gz``. ``keys`` name the source and the target in JSON lines;
    see :func:`file_formats.split_record`.

    Raises:
        InputError: a file cannot be read (see :func:`read_lines`), or a line holds no pair. At
            their end, two files with different numbers of lines raise this error too.
        UsageError: the format does not fit the files.
    """
    kind = file_format(source, target, format=format)
    if target is not None:
        return _aligned(Path(source), Path(target))
    return _from_one_file(Path(source), kind, keys)


def write_pairs(path: Path, pairs: Iterable[Pair]) -> int:
    """Write pairs as a file of JSON lines, whole or not at all; return the number of pairs.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.jsonl")
    ...     write_pairs(path, [Pair("Hallo", "Hello")]), list(read_pairs(path))
    (1, [Pair(source='Hallo', target='Hello')])
    """
    count = 0
    with open_atomically(path) as file:
        for pair in pairs:
            file.write(f"{join_record(*pair, 'jsonl')}\n".encode())
            count += 1
    return count


def _aligned(source: Path, target: Path) -> Iterator[Pair]:
    lines = enumerate(zip_longest(read_lines(source), read_lines(target)), start=1)
    for number, (text, translation) in lines:
        if text is None or translation is None:
            shorter, longer = number - 1, number + sum(1 for _ in lines)
            counts = (shorter, longer) if text is None else (longer, shorter)
            raise InputError(
                f"{source} has {counted(counts[0], 'line')} and {target} has {counts[1]:,}: line n"
                " of one must translate line n of the other: 'glassformer doctor' finds the line"
                " where they part"
            )
        yield Pair(text, translation)


def _from_one_file(path: Path, kind: Format, keys: tuple[str, str]) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            yield Pair(*split_record(line, kind, keys=keys))
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from error


@dataclass(frozen=True)
class Limits:
    """The limits beyond which training drops a pair; a side's length leaves out space around it.

    The defaults drop only pairs that cannot be a sentence and its translation.
    """

    #: The greatest length of a side in characters.
    max_chars: int = 2000
    #: The greatest ratio of the longer side's length to the shorter side's. English is 3 to 4
    #: times as long as Chinese.
    max_ratio: float = 9.0
    #: The ratio counts if the longer side has more characters than ``ratio_from``, because "Ja."
    #: may have a long translation.
    ratio_from: int = 20


class Filter:
    """Keeps the pairs that training can use, and counts the dropped pairs by reason.

    >>> keep = Filter(Limits(max_chars=10))
    >>> list(keep([Pair("Hallo", "Hello"), Pair("", "Hello"), Pair("so lang " * 5, "so long")]))
    [Pair(source='Hallo', target='Hello')]
    >>> str(keep)
    '1 of 3 pairs kept; 2 dropped: 1 empty, 1 long'
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.kept = 0
        self.characters = 0  # number of both sides' characters in the kept pairs
        self.counts = {"empty": 0, "long": 0, "ratio": 0}

    def __call__(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        return (
            pair
            for pair in pairs
            if self.reason(len(pair.source.strip()), len(pair.target.strip())) is None
        )

    def reason(self, source: int, target: int) -> str | None:
        """Count a pair by the lengths of its sides; return the reason to drop the pair, or None."""
        shorter, longer = (source, target) if source < target else (target, source)
        limits = self.limits
        if shorter == 0:
            reason = "empty"
        elif longer > limits.max_chars:
            reason = "long"
        elif longer > limits.ratio_from and longer > limits.max_ratio * shorter:
            reason = "ratio"
        else:
            self.kept += 1
            self.characters += source + target
            return None
        self.counts[reason] += 1
        return reason

    def __str__(self) -> str:
        dropped = sum(self.counts.values())
        summary = f"{self.kept:,} of {counted(self.kept + dropped, 'pair')} kept"
        if dropped:
            reasons = ", ".join(f"{n:,} {reason}" for reason, n in self.counts.items() if n)
            summary += f"; {dropped:,} dropped: {reasons}"
        return summary
