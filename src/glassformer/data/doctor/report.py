"""The doctor's report: the kinds of findings, the tables, and their JSON form."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from glassformer.data.doctor.checks import Lengths
from glassformer.data.file_formats import Format

__all__ = ["MEANINGS", "CorpusFiles", "Finding", "Overlap", "Part", "Report", "Severity", "Side"]

Severity = Literal["error", "warning", "note"]

#: Every kind of finding, the worst first: its severity and its meaning.
MEANINGS: dict[str, tuple[Severity, str]] = {
    "unpaired": ("error", "lines without a partner in the other file; training stops"),
    "malformed": ("error", "lines that hold no pair; training stops"),
    "invalid-utf8": ("error", "not UTF-8; training stops; convert the file, e.g. with iconv"),
    "nothing-left": ("error", "no pair is left to train on"),
    "empty": ("warning", "a side is empty"),
    "long": ("warning", "a side is too long for a sentence"),
    "ratio": ("warning", "one side is far longer than the other"),
    "many-subwords": (
        "warning",
        "a side has over 1,000 characters, about 250 subwords: training drops pairs with more"
        " subwords than its option max_tokens",
    ),
    "replacement": ("warning", "the text has U+FFFD: another program lost bytes"),
    "mojibake": ("warning", "UTF-8 text that another program read as Latin-1 or Windows-1252"),
    "control": ("warning", "the text has control characters, or line ends of other systems"),
    "bom-inside": ("warning", "the text has a byte order mark inside"),
    "mixed-line-ends": (
        "warning",
        "both LF and CR LF end lines; these have the rarer of the two",
    ),
    "overlap": ("warning", "pairs stand in both; scores on them are too high"),
    "repeated": ("note", "the pair repeats an earlier line; training keeps it"),
    "identical": ("note", "both sides have the same text; training keeps the pair"),
    "quoted": ("note", "a field is in quotes; if they are csv quotes, give the format tsv-quoted"),
    "bom": ("note", "a byte order mark stands at the start; training removes it"),
    "crlf": ("note", "CR LF ends the line; training removes the CR"),
}


@dataclass(frozen=True)
class CorpusFiles:
    """The files of one part: the arguments of :func:`corpus.read_pairs`."""

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
    """The number of pairs, sources and targets of one part that stand in another too.

    ``lines``: the first lines of such pairs.
    """

    part: str
    within: str
    pairs: int
    sources: int
    targets: int
    lines: list[int]


@dataclass(frozen=True)
class Report:
    """The doctor's whole report; the worst findings come first."""

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
