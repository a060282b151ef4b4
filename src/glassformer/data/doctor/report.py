"""What the doctor reports: the kinds of findings, the tables, and their JSON form."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from glassformer.data.doctor.checks import Lengths
from glassformer.data.file_formats import Format

__all__ = ["MEANINGS", "CorpusFiles", "Finding", "Overlap", "Part", "Report", "Severity", "Side"]

Severity = Literal["error", "warning", "note"]

#: Every finding, the worst first: how bad it is, and what it is.
MEANINGS: dict[str, tuple[Severity, str]] = {
    "unpaired": ("error", "no partner in the other file; training stops"),
    "malformed": ("error", "does not hold a pair; training stops"),
    "invalid-utf8": ("error", "not UTF-8; training stops; convert the file, e.g. with iconv"),
    "nothing-left": ("error", "no pair is left to train on"),
    "empty": ("warning", "a side is empty"),
    "long": ("warning", "a side is too long for a sentence"),
    "ratio": ("warning", "one side is far longer than the other"),
    "many-subwords": (
        "warning",
        "a side of over 1,000 characters, which is over 250 subwords by the usual count of four"
        " characters each: training drops such pairs (its option max_tokens)",
    ),
    "replacement": ("warning", "U+FFFD in the text, where bytes were lost earlier"),
    "mojibake": ("warning", "UTF-8 that was read as Latin-1 or Windows-1252"),
    "control": ("warning", "control characters, or line ends of other systems, in the text"),
    "bom-inside": ("warning", "a byte order mark within the text"),
    "mixed-line-ends": ("warning", "LF and CR LF both end lines; these are the rarer"),
    "overlap": ("warning", "the same pair in both; scores on it say too much"),
    "repeated": ("note", "the pair stood on an earlier line; it is kept"),
    "identical": ("note", "the same text on both sides; the pair is kept"),
    "quoted": ("note", "a field in quotes; for csv quotes, give the format tsv-quoted"),
    "bom": ("note", "byte order mark at the start; it is removed"),
    "crlf": ("note", "CR LF ends the line; the CR is removed"),
}


@dataclass(frozen=True)
class CorpusFiles:
    """Where pairs stand: the arguments of :func:`corpus.read_pairs`."""

    source: Path
    target: Path | None = None
    format: str | None = None
    keys: tuple[str, str] = ("source", "target")


@dataclass(frozen=True)
class Finding:
    """One kind of fault in one place: how often, the first lines, an example."""

    code: str
    severity: Severity
    part: str
    where: str
    count: int
    lines: list[int]
    example: str
    meaning: str


@dataclass(frozen=True)
class Side:
    """The tables of one side. Characters count without the space around the text."""

    characters: Lengths | None
    words: Lengths | None
    scripts: dict[str, float]


@dataclass(frozen=True)
class Part:
    """One part of the data, such as ``train``: its files, counts and tables."""

    files: list[str]
    format: Format
    lines: list[int]
    pairs: int
    source: Side
    target: Side


@dataclass(frozen=True)
class Overlap:
    """How many pairs, sources and targets of one part stand in another; ``lines``: of the pairs."""

    part: str
    within: str
    pairs: int
    sources: int
    targets: int
    lines: list[int]


@dataclass(frozen=True)
class Report:
    """All that the doctor has to say; the worst findings come first."""

    ok: bool
    kept: int
    characters: int
    """Of the pairs that are kept, both sides."""
    dropped: dict[str, int]
    parts: dict[str, Part]
    overlaps: list[Overlap]
    findings: list[Finding]

    def as_json(self) -> dict[str, object]:
        """The same as plain dictionaries and lists."""
        return asdict(self)
