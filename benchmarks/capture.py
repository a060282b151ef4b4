"""That looking inside costs nothing while nobody looks.

Run it as ``python -m benchmarks.capture BUNDLE TEXT``. The same translation and the same updates
run in turn with ``glassformer.inspection.capture`` imported and without: answers and weights must
be the same to the bit, the ratio of the times one.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.machine import cores
from benchmarks.pairs import Contender, Failed, paired, spread
from benchmarks.report import save, shown, table

__all__ = ["main"]

_KINDS = {"translating": "answers", "training": "weights"}


def main(words: list[str] | None = None) -> int:
    """Print the table; 0 done, 1 a run failed or its answers differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture", description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("text", type=Path, help="what is translated, a sentence a line")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--threads", type=int, default=cores())
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args(words)
    job = {
        "bundle": str(options.bundle.resolve()),
        "texts": str(options.text.resolve()),
        "updates": options.updates,
        "beam": options.beam,
        "threads": options.threads,
    }
    without, imported = (
        Contender(name, Path(sys.executable), "unwatched", {**job, "imported": said})
        for name, said in (("without", False), ("imported", True))
    )
    try:
        found = paired(imported, without, pairs=options.pairs)
    except Failed as fault:
        print(f"benchmarks: error: {fault}", file=sys.stderr)
        return 1
    rows, same = [], True
    for kind, answer in _KINDS.items():
        ratios = spread([one[kind] / other[kind] for one, other in found])
        equal = len({report[answer] for pair in found for report in pair}) == 1
        same &= equal
        rows.append([kind, shown(ratios, ".3f"), f"{answer} {'equal' if equal else 'DIFFER'}"])
    columns = ["what", "seconds, imported over without", "to the bit"]
    print(table("Capture's module imported, nobody looking", columns, rows))
    if options.out:
        save(options.out, {"job": job, "pairs": found})
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
