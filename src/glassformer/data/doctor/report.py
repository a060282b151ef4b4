"""The doctor's report: the kinds of findings, the tables, and their JSON form."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from glassformer.data.doctor.checks import Lengths
from glassformer.data.file_formats import Format

__all__ = [
    "COMMON",
    "LIGHT",
    "MEANINGS",
    "CorpusFiles",
    "Finding",
    "Overlap",
    "Part",
    "Report",
    "Severity",
    "Side",
]

Severity = Literal["error", "warning", "note"]

#: Every kind of finding, the worst first: its severity, and its meaning with the remedy.
MEANINGS: dict[str, tuple[Severity, str]] = {
    "utf-16": (
        "error",
        "this is UTF-16, which training cannot read: convert it",
    ),
    "cr-only": (
        "error",
        "a lone CR ends the lines, so the file counts as one line: convert it, e.g. with"
        " tr '\\r' '\\n'",
    ),
    "unpaired": ("error", "lines without a partner in the other file; training stops"),
    "csv-quotes": (
        "error",
        "lines hold no pair, and fields are in csv quotes: give the format tsv-quoted",
    ),
    "malformed": ("error", "lines that hold no pair; training stops"),
    "invalid-utf8": ("error", "not UTF-8; training stops; convert the file, e.g. with iconv"),
    "same-text": (
        "error",
        "most pairs have the same text on both sides: is one file given for both, or is a side not"
        " translated?",
    ),
    "shifted": (
        "error",
        "the sides are shifted against each other, by their lines' lengths: put the missing line"
        " in, or take the extra line out",
    ),
    "unrelated": (
        "error",
        "the lengths of the two sides have nothing to do with each other: is one side sorted,"
        " shuffled, or of another text?",
    ),
    "swapped": (
        "error",
        "the sides are swapped: its source looks like the training target, and its target like the"
        " training source; exchange the two",
    ),
    "nothing-left": ("error", "no pair is left to train on"),
    "header": (
        "warning",
        "the first line names the columns; training takes it for a pair: take it out, or give"
        " --write",
    ),
    "overlap": (
        "warning",
        "pairs stand in both; scores on them are too high: take them out of the training text, or"
        " give --write",
    ),
    "near-overlap": (
        "warning",
        "pairs stand in both but for case, punctuation or white space; scores on them are too"
        " high: take them out of the training text, or give --write",
    ),
    "known-sources": (
        "warning",
        "sources stand in both, with other targets; scores on them are too high: divide the text"
        " anew, by sources",
    ),
    "many-repeats": (
        "warning",
        "the pair repeats an earlier line; training reads each repeat: --write drops them",
    ),
    "other-script": (
        "warning",
        "the text has no letter of the script of its side: is it in another language? Take it out",
    ),
    "empty": ("warning", "a side is empty"),
    "long": ("warning", "a side is too long for a sentence"),
    "ratio": ("warning", "one side is far longer than the other"),
    "many-subwords": (
        "warning",
        "a side has over 1,000 characters, about 250 subwords: training drops pairs with more"
        " subwords than its option max_tokens",
    ),
    "tokenised": (
        "warning",
        "words or punctuation stand apart, as a tokenizer leaves them; if much of the text is so,"
        " the translator wants and writes such text: train on the text before that step",
    ),
    "lower-case": (
        "warning",
        "the side has no capital letters; the translator will know and write none: train on the"
        " text with them",
    ),
    "upper-case": (
        "warning",
        "the side has capital letters only; the translator will know and write no others: train on"
        " the text as people write it",
    ),
    "markup": (
        "warning",
        "the text has tags such as <p> or entities such as &amp;; training keeps them: take tags"
        " out; --write decodes entities",
    ),
    "lost-spans": (
        "warning",
        "the target lacks a placeholder, tag, address, emoji or number with a unit of its source; a"
        " translator learns to lose them: mend the pairs, or take them out",
    ),
    "replacement": (
        "warning",
        "the text has U+FFFD: another program lost bytes; training keeps it: convert the original"
        " anew",
    ),
    "mojibake": (
        "warning",
        "UTF-8 text that another program read as Latin-1 or Windows-1252; training keeps it:"
        " convert the original anew",
    ),
    "control": (
        "warning",
        "the text has control characters, or line ends of other systems; training takes them out;"
        " was the text in another encoding?",
    ),
    "mixed-line-ends": (
        "warning",
        "both LF and CR LF end lines; these have the rarer of the two; training removes the CR",
    ),
    "not-nfc": (
        "note",
        "the text is not in Unicode's form NFC, so that a letter with an accent may have two forms;"
        " training makes them one",
    ),
    "bom-inside": (
        "note",
        "the text has a byte order mark inside; training takes it out",
    ),
    "zero-width": (
        "note",
        "the text has characters that nobody sees (U+200B, U+2060, U+00AD); training takes them"
        " out",
    ),
    "white-space": (
        "note",
        "the text has tabs, several spaces in a row, or other white space than the space; training"
        " makes it one space",
    ),
    "repeated": ("note", "the pair repeats an earlier line; training keeps it"),
    "identical": ("note", "both sides have the same text; training keeps the pair"),
    "quoted": ("note", "a field is in quotes; if they are csv quotes, give the format tsv-quoted"),
    "bom": ("note", "a byte order mark stands at the start; training removes it"),
    "crlf": ("note", "CR LF ends the line; training removes the CR"),
}

#: These do harm only if they are common: below this share of the pairs they are notes.
COMMON = 0.01
LIGHT = frozenset(["other-script", "tokenised", "markup", "lost-spans"])


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

    ``near``: the further pairs that do but for case, punctuation and white space. ``lines`` and
    ``near_lines``: the first lines of such pairs.
    """

    part: str
    within: str
    pairs: int
    sources: int
    targets: int
    near: int
    lines: list[int]
    near_lines: list[int]


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
