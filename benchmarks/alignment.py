"""Word alignment on the phrasebook: the error rate of each layer, head and row, and of the best.

Run it as ``python -m benchmarks.alignment BUNDLE``. The heads are chosen on validation phrases,
the figure is that of test phrases, whose years neither training nor validation has shown. Both
sides of a phrase are written from one value, so which words belong together is known. A head
chosen without that knowledge, by anchors, is given beside it. The last table compares the order of
the words that belong together with that of the words which attention links.
"""

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from benchmarks.report import table
from glassformer.data.phrasebook.book import Phrase, phrasebook, true_links
from glassformer.data.words import Span, TrueLinks
from glassformer.errors import InputError
from glassformer.inspection.alignment.align import Heads, align
from glassformer.inspection.alignment.heads import Found, error_rate, find_heads, store_heads
from glassformer.translator import Translator

__all__ = ["main"]


def main(words: list[str] | None = None) -> int:
    """Print the tables, write a JSON where asked to; 0 done, 1 the work failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alignment", description=__doc__)
    parser.add_argument("bundle", type=Path, help="a phrasebook's translator, as of the demo")
    parser.add_argument("--phrases", type=int, default=500, help="of validation, and of test")
    parser.add_argument("--seed", type=int, default=1, help="of the phrases: the demo's own")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    parser.add_argument("--store", action="store_true", help="keep the heads in the bundle")
    options = parser.parse_args(words)
    try:
        return _measure(options)
    except InputError as error:
        print(f"benchmarks: error: {error}", file=sys.stderr)
        return 1


def _measure(options: argparse.Namespace) -> int:
    translator = Translator.load(options.bundle)
    source, target = translator.bundle.languages or ("en", "de")
    book = phrasebook(source=source, target=target, seed=options.seed, size=24 * options.phrases)
    valid, test = book.validation, book.test[: options.phrases]
    truth, known = (_truth(phrases, source, target) for phrases in (valid, test))
    pairs = [(phrase.source, phrase.target) for phrase in valid]
    found, unaided = find_heads(translator, pairs, truth), find_heads(translator, pairs)
    print(_by_head(found, translator.model.config.num_heads))
    chosen = {
        "true links": found.heads,
        "anchors": unaided.heads,
        "not chosen: all heads of a layer": Heads.of(None, translator.model.config),
    }
    links = {name: _links(translator, heads, test) for name, heads in chosen.items()}
    errors = {name: error_rate(ours, known) for name, ours in links.items()}
    rows = [
        [name, h.row, str(h.layer + 1), _numbers(h.heads), f"{100 * errors[name]:.2f} %"]
        for name, h in chosen.items()
    ]
    title = f"Alignment error rate of {len(test)} test phrases, {source} to {target}"
    print(table(title, ["chosen by", "row", "layer", "heads", "error rate"], rows))
    orders = _orders(test, known, links["true links"])
    title = "Order of the words that belong together: 1 as in the source, -1 reversed"
    rows = [[kind, *(f"{order:+.2f}" for order in pair)] for kind, pair in orders.items()]
    print("\n" + table(title, ["kind of phrase", "true", "found"], rows))
    if options.out:
        table_of_heads = [one._asdict() for one in found.table]
        stored = {"table": table_of_heads, "test": errors, "order": orders}
        options.out.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")
    if options.store:
        store_heads(options.bundle, found.heads)
    return 0


def _truth(phrases: list[Phrase], source: str, target: str) -> list[TrueLinks]:
    found = [true_links(phrase.source, source=source, target=target) for phrase in phrases]
    return [links for links in found if links is not None]


def _links(
    translator: Translator, heads: Heads, phrases: list[Phrase]
) -> list[set[tuple[Span, Span]]]:
    sources, targets = [p.source for p in phrases], [p.target for p in phrases]
    found = align(translator, sources, targets, heads=heads)
    return [{(one.source, one.target) for one in links} for links in found]


def _orders(
    phrases: list[Phrase], truth: list[TrueLinks], links: list[set[tuple[Span, Span]]]
) -> dict[str, tuple[float, float]]:
    """For each kind of phrase the mean order of the true links, and of those found among their
    words: the map of a date is nearly anti-diagonal where the year comes first."""
    orders: dict[str, list[tuple[float, float]]] = {}
    for phrase, known, found in zip(phrases, truth, links, strict=True):
        sources, targets = (set(side) for side in zip(*known.possible, strict=True))
        judged = {(one, other) for one, other in found if one in sources and other in targets}
        orders.setdefault(phrase.kind, []).append((_order(known.sure), _order(judged)))
    return {
        kind: (statistics.fmean(true for true, _ in pairs), statistics.fmean(f for _, f in pairs))
        for kind, pairs in sorted(orders.items())
    }


def _order(links: Collection[tuple[Span, Span]]) -> float:
    """Kendall's tau: pairs of links in the same order less those that cross, by their number; 0
    where there are none."""
    signs = [
        1 if source_before == target_before else -1
        for one, other in itertools.combinations(links, 2)
        if one[0] != other[0] and one[1] != other[1]
        for source_before, target_before in [(one[0] < other[0], one[1] < other[1])]
    ]
    return statistics.fmean(signs) if signs else 0.0


def _numbers(heads: Sequence[int]) -> str:
    """Heads as people count them, from 1."""
    return " ".join(str(head + 1) for head in heads)


def _by_head(found: Found, heads: int) -> str:
    cells = {(one.row, one.layer, one.head): f"{100 * one.error:.1f}" for one in found.table}
    names = [*range(heads), None]
    rows = [
        [row, str(layer + 1), *(cells[row, layer, head] for head in names)]
        for row, layer in dict.fromkeys(place[:2] for place in cells)
    ]
    columns = ["row", "layer", *(f"head {head + 1}" for head in range(heads)), "all"]
    return table("Alignment error rate on validation phrases, in %", columns, rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
