"""Ways to ruin a clean corpus, each with the finding of the doctor that names it.

A way is named if the doctor reports its finding, and did not report it of the clean corpus, or of
much fewer lines.
"""

import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from glassformer.tools.doctor.examine import CorpusFiles, Report, examine
from glassformer.tools.phrasebook.book import phrasebook

Lines = list[str]


@dataclass(frozen=True)
class Corpus:
    """The lines of four files, and the bytes of the training target's."""

    source: Lines
    target: Lines
    valid_source: Lines
    valid_target: Lines
    encode: Callable[[str], bytes] = field(default=str.encode)


@dataclass(frozen=True)
class Way:
    """One way to ruin a corpus. ``code``: the finding that names it; None: the doctor has none."""

    title: str
    code: str | None
    ruin: Callable[[Corpus], Corpus]


def _target(change: Callable[[str], str], every: int = 1) -> Callable[[Corpus], Corpus]:
    """Changes the target text, of each line or of each second, third or so."""
    return lambda corpus: replace(
        corpus,
        target=[text if row % every else change(text) for row, text in enumerate(corpus.target)],
    )


def _both(change: Callable[[str], str]) -> Callable[[Corpus], Corpus]:
    return lambda corpus: replace(
        corpus, source=list(map(change, corpus.source)), target=list(map(change, corpus.target))
    )


def _encoded(encode: Callable[[str], bytes]) -> Callable[[Corpus], Corpus]:
    return lambda corpus: replace(corpus, encode=encode)


def _shifted(start: float, stop: float) -> Callable[[Corpus], Corpus]:
    """One target line is missing at ``start``; at ``stop`` there is one too many."""

    def ruin(corpus: Corpus) -> Corpus:
        lines = list(corpus.target)
        end = round(stop * len(lines))
        missing = lines.pop(round(start * len(lines)))
        lines.insert(end, missing)
        return replace(corpus, target=lines)

    return ruin


def _shuffled(corpus: Corpus) -> Corpus:
    return replace(corpus, target=random.Random(0).sample(corpus.target, len(corpus.target)))


def _sides_exchanged(corpus: Corpus) -> Corpus:
    pairs = [
        pair if row % 2 else pair[::-1]
        for row, pair in enumerate(zip(corpus.source, corpus.target, strict=True))
    ]
    source, target = map(list, zip(*pairs, strict=True))
    return replace(corpus, source=source, target=target)


def _targets_exchanged(corpus: Corpus) -> Corpus:
    """Each tenth target goes to the next tenth pair."""
    rows = list(range(0, len(corpus.target), 10))
    target = list(corpus.target)
    for row, other in zip(rows, rows[1:] + rows[:1], strict=True):
        target[row] = corpus.target[other]
    return replace(corpus, target=target)


def _leaked(change: Callable[[str], str]) -> Callable[[Corpus], Corpus]:
    """Half of the validation pairs come from training, with changed targets."""

    def ruin(corpus: Corpus) -> Corpus:
        half = len(corpus.valid_source) // 2
        return replace(
            corpus,
            valid_source=corpus.source[:half] + corpus.valid_source[half:],
            valid_target=list(map(change, corpus.target[:half])) + corpus.valid_target[half:],
        )

    return ruin


def _repeated(corpus: Corpus) -> Corpus:
    """44 % of the pairs are repeats."""
    rows = list(range(len(corpus.source)))
    rows += rows[: round(len(rows) * 0.44 / 0.56)]
    return replace(
        corpus,
        source=[corpus.source[row] for row in rows],
        target=[corpus.target[row] for row in rows],
    )


def _tokenised(text: str) -> str:
    return "".join(f" {mark}" if mark in ",.:;!?" else mark for mark in text)


def _apart(text: str) -> str:
    return " ".join(text.replace(" ", ""))


def _mojibake(text: str) -> str:
    return text.encode().decode("cp1252", "replace")


WAYS = (
    Way("target one line too early, from the first line on", "shifted", _shifted(0, 1)),
    Way("target one line too early, from the middle on", "shifted", _shifted(0.5, 1)),
    Way("the same from the first third to the second", "shifted", _shifted(1 / 3, 2 / 3)),
    Way("a target line missing", "unpaired", lambda c: replace(c, target=c.target[1:])),
    Way("targets shuffled", "unrelated", _shuffled),
    Way("targets sorted", "unrelated", lambda c: replace(c, target=sorted(c.target))),
    Way("one file for both sides", "same-text", lambda c: replace(c, target=c.source)),
    Way("validation pairs from training", "overlap", _leaked(str)),
    Way(
        "validation sources from training, with other targets",
        "known-sources",
        _leaked(lambda t: f"{t} Ja"),
    ),
    Way("44 % of the pairs are repeats", "many-repeats", _repeated),
    Way("half of the targets in NFD", "not-nfc", _target(partial(unicodedata.normalize, "NFD"), 2)),
    Way("tags around each target", "markup", _target("<p>{}</p>".format)),
    Way("a placeholder in each source alone", "lost-spans", lambda c: replace(
        c, source=[f"{text} {{name}}" for text in c.source]
    )),
    Way("entities in each target", "markup", _target(lambda t: t.replace(" ", "&nbsp;"))),
    Way("a space before punctuation", "tokenised", _both(_tokenised)),
    Way("characters apart, as some split Japanese", "tokenised", _target(_apart)),
    Way("subwords left in", "tokenised", _target(lambda t: f"{t[:4]}@@ {t[4:]}")),
    Way("target in lower case", "lower-case", _target(str.lower)),
    Way("both sides in capitals", "upper-case", _both(str.upper)),
    Way("double spaces", "white-space", _both(lambda t: t.replace(" ", "  "))),
    Way("no-break spaces", "white-space", _target(lambda t: t.replace(" ", "\xa0"))),
    Way("tabs", "white-space", _target(lambda t: t.replace(" ", "\t"))),
    Way("zero-width spaces", "zero-width", _target(lambda t: f"{t[:2]}\u200b{t[2:]}")),
    Way("byte order marks inside", "bom-inside", _target(lambda t: f"{t[:2]}\ufeff{t[2:]}")),
    Way("C1 control characters", "control", _target(lambda t: f"{t}\x92", 5)),
    Way("UTF-8 read as Windows-1252", "mojibake", _target(_mojibake)),
    Way("bytes lost to U+FFFD", "replacement", _target(lambda t: f"{t[:2]}\ufffd{t[3:]}", 5)),
    Way("Latin-1", "invalid-utf8", _encoded(lambda t: t.encode("latin-1", "replace"))),
    Way("UTF-16 without a byte order mark", "utf-16", _encoded(lambda t: t.encode("utf-16-le"))),
    Way("a lone CR ends the lines", "cr-only", _encoded(lambda t: t.replace("\n", "\r").encode())),
    Way("each tenth target left in the source's language", "identical", lambda c: replace(
        c, target=[c.target[row] if row % 10 else text for row, text in enumerate(c.source)]
    )),
    Way("each tenth target exchanged with another", None, _targets_exchanged),
    Way("each second pair with its sides exchanged", None, _sides_exchanged),
    Way("each tenth target without its second half", None, _target(lambda t: t[: len(t) // 2], 10)),
)  # fmt: skip


def phrases(*, target: str = "de", pairs: int = 600) -> Corpus:
    """A clean corpus of the phrasebook."""
    book = phrasebook(target=target, size=pairs)
    return Corpus(
        [phrase.source for phrase in book.train],
        [phrase.target for phrase in book.train],
        [phrase.source for phrase in book.validation],
        [phrase.target for phrase in book.validation],
    )


def examined(corpus: Corpus, folder: Path) -> Report:
    """The doctor's report of a corpus, whose files are written into a folder."""
    names = ("source", "target", "valid_source", "valid_target")
    for name in names:
        text = "".join(f"{line}\n" for line in getattr(corpus, name))
        (folder / name).write_bytes(corpus.encode(text) if name == "target" else text.encode())
    source, target, valid_source, valid_target = (folder / name for name in names)
    return examine(CorpusFiles(source, target), valid=CorpusFiles(valid_source, valid_target))


def named(clean: Report, ruined: Report) -> tuple[str, ...]:
    """The findings of a ruined corpus that are new, graver or much more frequent."""
    before = {(each.code, each.severity): each.count for each in clean.findings}
    more = clean.parts["train"].pairs // 20
    return tuple(
        dict.fromkeys(
            each.code
            for each in ruined.findings
            if each.count >= before.get((each.code, each.severity), -more) + more
        )
    )
