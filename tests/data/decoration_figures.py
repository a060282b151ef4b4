"""Counts the decorated texts that come back right, by family and way, and prints a table.

``python -m tests.data.decoration_figures [--cases N] [--ways python,page] [BUNDLE …]`` measures the
exact translator and the given bundles. A bundle's right translation is its own of the plain text.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from glassformer.data.corpus import read_pairs
from glassformer.data.known import Known
from glassformer.training.setup.run_directory import RunDirectory
from glassformer.translator import Translator
from tests.data.decorations import FAMILIES, Case, Pair, cases
from tests.data.exact_translator import (
    PAIRS,
    ExactEngine,
    exact_translator,
    in_the_order_of_words,
)
from tests.data.ways import WAYS, fits

_AMOUNT = re.compile(r"(?<!\w)\$\d(?!\w)")  # a placeholder, unless the model knows money
_TEXTS = 12  # that a bundle translates for each family
_READ = 2_000
_MOST_WORDS = 14


@dataclass(frozen=True)
class Count:
    """The cases of a family that are right, all cases, and a wrong case with its translation."""

    right: int
    all: int
    wrong: tuple[Case, str] | None = None

    def __str__(self) -> str:
        return f"{100 * self.right / self.all:.0f}" if self.all else "–"


def plain_pairs(directory: Path, translator: Translator) -> list[Pair]:
    """Short texts of a run, each with the bundle's translation; exact translations come first."""
    run = RunDirectory(directory)
    files = [path for path in (run.valid, run.train) if path.exists() and path.stat().st_size]
    known = list(islice(read_pairs(files[0]), _READ)) if files else []
    pairs = {pair.source: pair.target for pair in known} or dict.fromkeys(
        translator.bundle.examples, ""
    )
    texts = [text for text in pairs if 2 <= len(text.split(" ")) <= _MOST_WORDS]
    texts = texts[:: max(1, len(texts) // (8 * _TEXTS))]
    found = [
        (translation.text != pairs[text], Pair(text, translation.text))
        for text, translation in zip(texts, translator.translate(texts), strict=True)
    ]
    return [pair for _, pair in sorted(found, key=lambda each: each[0])[:_TEXTS]]


def counted(
    translator: Translator,
    pairs: Sequence[Pair],
    names: Sequence[str],
    *,
    way: str,
    count: int,
) -> dict[str, Count]:
    """The count of each family, by one way; a bundle's plain translations are of that way."""
    if not isinstance(translator.engine, ExactEngine):
        plain = [pair.source for pair in pairs]
        pairs = list(map(Pair, plain, WAYS[way](translator, plain)))
    known = translator.bundle.known or Known()
    learnt = [*(f" {run} " for run in known.edges.middles or ()), *(known.edges.middles or ())]
    text = [run for run in learnt if run.endswith(" ")]  # no decoration
    has_money = "$" in (known.characters or ("",))[0]
    chosen = [
        case
        for name in names
        for case in cases(FAMILIES[name], count, pairs)
        if fits(way, case.source) and not any(run in case.source for run in text)
        if not (has_money and _AMOUNT.search(case.source))
    ]
    written = translated(translator, chosen, way)
    counts: dict[str, Count] = {}
    for name in names:
        rows = [row for row in zip(chosen, written, strict=True) if row[0].family == name]
        wrong = [row for row in rows if not is_right(*row)]
        first = min(wrong, key=lambda row: len(row[0].source), default=None)
        counts[name] = Count(len(rows) - len(wrong), len(rows), first)
    return counts


def translated(translator: Translator, chosen: Sequence[Case], way: str) -> list[str]:
    """The translation of each case by a way; an exact translator learns the cases' plain texts."""
    texts = [case.source for case in chosen]
    if not isinstance(translator.engine, ExactEngine):
        return WAYS[way](translator, texts)
    translator.engine.learn(pair for case in chosen for pair in case.pairs)
    with in_the_order_of_words():
        return WAYS[way](translator, texts)


def is_right(case: Case, written: str) -> bool:
    """Whether a translation is one of the right ones; CR LF may become LF."""
    return written.replace("\r\n", "\n") in {each.replace("\r\n", "\n") for each in case.targets}


def names_for(translator: Translator) -> list[str]:
    """The families of texts that the translator can know, and of decorations that it cannot."""
    exact = isinstance(translator.engine, ExactEngine)
    numbers = translator.bundle.preprocessing.reads_numbers
    return [
        name
        for name, family in FAMILIES.items()
        if (exact or not family.stub) and not (family.numbers and numbers)
    ]


def table(translator: Translator, pairs: Sequence[Pair], ways: Sequence[str], count: int) -> str:
    """The percentages of right cases, with a row for each family and a wrong case behind it."""
    names = names_for(translator)
    columns = {way: counted(translator, pairs, names, way=way, count=count) for way in ways}
    lines = [f"{'family':36}" + "".join(f"{way:>9}" for way in ways)]
    for where in ("edge", "inside"):
        of_kind = [name for name in names if FAMILIES[name].where == where]
        for name in of_kind:
            row = f"{name + ' *' * (not FAMILIES[name].named):36}" + "".join(
                f"{columns[way][name]!s:>9}" for way in ways
            )
            wrong = columns[ways[0]][name].wrong
            example = f"   {wrong[0].source!r} -> {wrong[1]!r}" if wrong else ""
            lines.append(row + example[:150])
        groups = [[columns[way][name] for name in of_kind] for way in ways]
        totals = [Count(sum(x.right for x in of), sum(x.all for x in of)) for of in groups]
        lines.append(f"{'all, ' + where:36}" + "".join(f"{total!s:>9}" for total in totals))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=50, help="cases of each family")
    parser.add_argument("--ways", default="python,command,server,page", help=", ".join(WAYS))
    parser.add_argument("--no-stub", action="store_true", help="leave the exact translator out")
    parser.add_argument("bundles", nargs="*", type=Path)
    asked = parser.parse_args()
    ways = asked.ways.split(",")
    if not asked.no_stub:
        print("exact translator: right cases in per cent (* named by no finding)")
        print(table(exact_translator(), PAIRS, ways, asked.cases), flush=True)
    for directory in asked.bundles:
        translator = Translator.load(directory, device="cpu", engine="auto")
        pairs = plain_pairs(directory, translator)
        print(f"\n{directory}: {', '.join(repr(pair.source) for pair in pairs)}")
        print(table(translator, pairs, ways, asked.cases), flush=True)


if __name__ == "__main__":
    main()
