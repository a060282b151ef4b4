"""What the doctor reports: the kinds of findings, the tables, and their JSON form."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from glassformer.data.records import Format
from glassformer.data.text_checks import Lengths

__all__ = ["MEANINGS", "CorpusFiles", "Finding", "Overlap", "Part", "Report", "Severity", "Side"]

Severity = Literal["error", "warning", "note"]

#: Every finding, the worst first: how bad it is, and what it is.
MEANINGS: dict[str, tuple[Severity, str]] = {
    "unpaired": ("error", "lines without a partner in the other file; training stops"),
    "malformed": ("error", "lines that do not hold a pair; training stops"),
    "invalid-utf8": ("error", "lines that are not UTF-8; training stops; convert the file"),
    "nothing-left": ("error", "no pair is left to train on"),
    "empty": ("warning", "pairs with an empty side"),
    "long": ("warning", "pairs with a side too long for a sentence"),
    "ratio": ("warning", "pairs with one side far longer than the other"),
    "replacement": ("warning", "lines with U+FFFD, which stands where bytes were lost earlier"),
    "mojibake": ("warning", "lines with UTF-8 that was read as Latin-1 or Windows-1252"),
    "control": ("warning", "lines with control characters or line ends of other systems"),
    "bom-inside": ("warning", "lines with a byte order mark within the text"),
    "mixed-line-ends": ("warning", "lines that end otherwise (LF, CR LF) than most of the file"),
    "overlap": ("warning", "pairs that stand in both: scores on them say too much"),
    "repeated": ("note", "pairs that stood on an earlier line; they are kept"),
    "identical": ("note", "pairs with the same text on both sides; they are kept"),
    "bom": ("note", "byte order mark at the start; it is removed"),
    "crlf": ("note", "lines that end with CR LF; the CR is removed"),
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
    dropped: dict[str, int]
    parts: dict[str, Part]
    overlaps: list[Overlap]
    findings: list[Finding]

    def as_json(self) -> dict[str, object]:
        """The same as plain dictionaries and lists."""
        return asdict(self)
