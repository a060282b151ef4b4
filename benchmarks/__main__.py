"""``python -m benchmarks FIGURE``: measure, print a table, write a JSON and a picture."""

import sys
from collections.abc import Sequence
from importlib import import_module

from benchmarks.environments import Unavailable
from benchmarks.options import Options, parser
from benchmarks.pairs import Failed
from benchmarks.prepared import SIZES
from glassformer.errors import InputError, nearest

__all__ = ["FIGURES", "NEED_DATA", "main"]

FIGURES = {
    "training": "benchmarks.training",
    "curve": "benchmarks.curve",
    "decoding": "benchmarks.decoding",
    "growth": "benchmarks.growth",
    "quality": "benchmarks.time_to_quality",
    "recipes": "benchmarks.recipes",
}

NEED_DATA = ("quality", "recipes")  # a whole training wants real text


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 0 done, 1 the work failed, 2 the call was wrong."""
    made = parser(tuple(FIGURES))
    said = vars(made.parse_args(words))
    for name in said["sizes"]:
        if name not in SIZES:
            made.error(f"--sizes {name}: expected {', '.join(SIZES)}{nearest(name, SIZES)}")
    if min(said["beams"]) < 1:
        made.error(f"--beams {min(said['beams'])}: a beam is at least 1, which is greedy search")
    lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
    options = Options(**{**said, **lists})
    figures = [options.figure]
    if options.figure == "all":
        figures = [name for name in FIGURES if options.data or name not in NEED_DATA]
    try:
        for figure in figures:
            import_module(FIGURES[figure]).main(options)
    except (InputError, Failed, Unavailable) as fault:
        print(f"benchmarks: error: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
