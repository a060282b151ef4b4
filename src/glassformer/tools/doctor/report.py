"""The doctor's report: the kinds of findings, the tables, and their JSON form."""

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

#: Every kind of finding, the worst first: its severity, and its meaning with the remedy.
MEANINGS: dict[str, tuple[Severity, str]] = {
    "utf-16": ("error", "this is UTF-16, which training cannot read: convert it"),
    "cr-only": ("error", "a lone CR ends the lines: convert them, e.g. with tr '\\r' '\\n'"),
    "unpaired": ("error", "lines without a partner in the other file; training stops"),
    "csv-quotes": ("error", "lines hold no pair but csv quotes: give the format tsv-quoted"),
    "malformed": ("error", "lines that hold no pair; training stops"),
    "invalid-utf8": ("error", "not UTF-8; training stops; convert the file, e.g. with iconv"),
    "same-text": ("error", RUINOUS["same-text"]),
    "shifted": ("error", RUINOUS["shifted"]),
    "unrelated": ("error", RUINOUS["unrelated"]),
    "nothing-left": ("error", "no pair is left to train on"),
    "unrelated-words": (
        "warning",
        "the lengths of the two sides have nothing to do with each other, which proves nothing of"
        " short lines: compare some lines by hand",
    ),
    "overlap": (
        "warning",
        "the same pairs stand in both, so the scores are too high; --write takes them out of the"
        " training text",
    ),
    "known-sources": (
        "warning",
        "the same sources stand in both, so the scores are too high: divide the text anew, by"
        " sources",
    ),
    "many-repeats": ("warning", "the pair repeats an earlier line; --write drops the repeats"),
    "empty": ("warning", "a side is empty"),
    "long": ("warning", "a side is too long for a sentence"),
    "ratio": ("warning", "one side is far longer than the other"),
    "many-subwords": (
        "warning",
        "a side has over 1,000 characters, about 250 subwords: training drops it above max_tokens",
    ),
    "tokenised": (
        "warning",
        "words or punctuation stand apart, as after a tokenizer: train on the text before it",
    ),
    "lower-case": ("warning", "no capital letters, so the translator writes none: restore them"),
    "upper-case": (
        "warning",
        "capitals only, so the translator writes only these: restore case",
    ),
    "markup": (
        "warning",
        "tags such as <p>, or entities such as &amp;: take tags out; --write decodes entities",
    ),
    "lost-spans": (
        "warning",
        "the target lacks a placeholder, tag, address, emoji or number with a unit of its source:"
        " mend the pairs, or take them out",
    ),
    "replacement": ("warning", "U+FFFD: another program lost bytes: convert the original anew"),
    "mojibake": ("warning", "UTF-8 read as Latin-1 or Windows-1252: convert the original anew"),
    "control": (
        "warning",
        "control characters, or line ends of other systems, which training takes out; was the text"
        " in another encoding?",
    ),
    "mixed-line-ends": ("warning", "both LF and CR LF end lines; these have the rarer of the two"),
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

#: These do harm only if they are common: below this share of the pairs they are notes.
COMMON = 0.01
LIGHT = frozenset(["tokenised", "markup", "lost-spans"])


@dataclass(frozen=True)
class CorpusFiles:
    """The files of one part: the arguments of :func:`corpus.read_pairs`."""

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
class Lengths:
    """The lengths of a side's sentences in one unit; ``p95``: 95 % of them are no longer."""

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
    """One part of the data, such as ``train``: its files, counts and tables."""

    files: list[str]
    format: Format
    lines: list[int]
    pairs: int
    source: SideReport
    target: SideReport


@dataclass(frozen=True)
class Overlap:
    """How many pairs, sources and targets of one part stand in another too; their first lines."""

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
    parts: dict[str, PartReport]
    overlaps: list[Overlap]
    findings: list[Finding]
