"""The doctor's report, with the kinds of findings, the tables and the JSON form."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Literal

from glassformer.data.file_formats import Format
from glassformer.data.parallel_lines import RUINOUS

__all__ = [
    "COMMON",
    "LIGHT",
    "MEANINGS",
    "CorpusFiles",
    "Finding",
    "Lengths",
    "Overlap",
    "PartReport",
    "Report",
    "Severity",
    "SideReport",
]

Severity = Literal["error", "warning", "note"]

#: The severity, meaning and remedy of every kind of finding; the worst kinds come first.
MEANINGS: dict[str, tuple[Severity, str]] = {
    "utf-16": ("error", "the file is UTF-16, which training cannot read: convert it"),
    "cr-only": ("error", "a lone CR ends lines: convert the file, e.g. with tr '\\r' '\\n'"),
    "unpaired": ("error", "lines without a partner in the other file; training stops"),
    "csv-quotes": ("error", "lines hold csv quotes and no pair: give the format tsv-quoted"),
    "malformed": ("error", "lines that hold no pair; training stops"),
    "invalid-utf8": ("error", "not UTF-8; training stops; convert the file, e.g. with iconv"),
    "same-text": ("error", RUINOUS["same-text"]),
    "shifted": ("error", RUINOUS["shifted"]),
    "unrelated": ("error", RUINOUS["unrelated"]),
    "nothing-left": ("error", "no pair is left to train on"),
    "unrelated-words": (
        "warning",
        "the lengths of the two sides are unrelated, which proves nothing if lines are short:"
        " compare some lines by hand",
    ),
    "overlap": (
        "warning",
        "pairs stand in both texts, so the scores are too high; the mended training text is"
        " without them",
    ),
    "known-sources": (
        "warning",
        "sources stand in both texts, so the scores are too high: divide the text anew, by sources",
    ),
    "many-repeats": ("warning", "the pair repeats an earlier line; mended files lack repeats"),
    "empty": ("warning", "a side is empty"),
    "long": ("warning", "a side is too long for a sentence"),
    "ratio": ("warning", "one side is far longer than the other"),
    "many-subwords": (
        "warning",
        "a side has over 1,000 characters, about 250 subwords; training drops it above max_tokens",
    ),
    "tokenised": (
        "warning",
        "words or punctuation stand apart, as after a tokenizer: train on untokenised text",
    ),
    "lower-case": ("warning", "no capital letters, so the translator writes none: restore them"),
    "upper-case": (
        "warning",
        "capitals only, so the translator writes only capitals: restore case",
    ),
    "markup": (
        "warning",
        "tags such as <p>, or entities such as &amp;: take tags out; mended files have no entities",
    ),
    "lost-spans": (
        "warning",
        "the target lacks a placeholder, tag, address, emoji or number with a unit of the source:"
        " mend the pairs, or take them out",
    ),
    "replacement": ("warning", "U+FFFD: another program lost bytes: convert the original anew"),
    "mojibake": ("warning", "UTF-8 read as Latin-1 or Windows-1252: convert the original anew"),
    "control": (
        "warning",
        "control characters, or line ends of other systems, which training takes out; was the text"
        " in another encoding?",
    ),
    "mixed-line-ends": ("warning", "both LF and CR LF end lines; the rarer end is listed here"),
    "not-nfc": ("note", "not in Unicode's form NFC; training converts it"),
    "bom-inside": ("note", "a byte order mark inside the text; training takes it out"),
    "zero-width": (
        "note",
        "characters that nobody sees, such as U+200B or U+200E; training takes them out",
    ),
    "white-space": ("note", "tabs, several or unusual spaces; training makes them one space"),
    "repeated": ("note", "the pair repeats an earlier line; training keeps it"),
    "identical": ("note", "both sides have the same text; training keeps the pair"),
    "quoted": ("note", "a field is in quotes; if they are csv quotes, give the format tsv-quoted"),
    "bom": ("note", "a byte order mark stands at the start; training removes it"),
    "crlf": ("note", "CR LF ends the line; training removes the CR"),
}

#: A finding in ``LIGHT`` is a note if fewer than the share ``COMMON`` of the pairs have the fault.
COMMON = 0.01
LIGHT = frozenset(["tokenised", "markup", "lost-spans"])


@dataclass(frozen=True)
class CorpusFiles:
    """The files of one part, in the form of the arguments of :func:`corpus.read_pairs`."""

    source: Path
    target: Path | None = None
    _: KW_ONLY
    format: str | None = None
    keys: tuple[str, str] = ("source", "target")

    @property
    def paths(self) -> list[Path]:
        return [self.source] if self.target is None else [self.source, self.target]


@dataclass(frozen=True)
class Finding:
    """The count, first lines and an example of one kind of fault in one place."""

    code: str
    severity: Severity
    part: str
    where: str
    count: int
    lines: list[int]
    example: str
    meaning: str


@dataclass(frozen=True)
class Lengths:
    """The lengths of a side's sentences in one unit; 95 % of all lengths are at most ``p95``."""

    min: int
    median: int
    mean: float
    p95: int
    p99: int
    max: int


@dataclass(frozen=True)
class SideReport:
    """The tables of one side. Characters count without the space around the text."""

    characters: Lengths | None
    words: Lengths | None
    scripts: dict[str, float]


@dataclass(frozen=True)
class PartReport:
    """The files, counts and tables of one part of the data, such as ``train``."""

    files: list[str]
    format: Format
    lines: list[int]
    pairs: int
    source: SideReport
    target: SideReport


@dataclass(frozen=True)
class Overlap:
    """The numbers of pairs, sources and targets of one part that another part also holds."""

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
    """Number of characters in both sides of the kept pairs."""
    dropped: dict[str, int]
    parts: dict[str, PartReport]
    overlaps: list[Overlap]
    findings: list[Finding]
