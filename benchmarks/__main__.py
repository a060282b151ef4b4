"""``python -m benchmarks FIGURE``: measures one figure, prints its table and writes a JSON file."""

import sys
from collections.abc import Sequence
from importlib import import_module

from benchmarks.environments import Unavailable
from benchmarks.options import parse
from benchmarks.pairs import Failed
from glassformer.errors import InputError

__all__ = ["FIGURES", "main"]

FIGURES = {
    "training": "benchmarks.training",
    "decoding": "benchmarks.decoding",
    "quality": "benchmarks.time_to_quality",
    "serving": "benchmarks.serving",
}


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 0 done, 1 the work failed, 2 the call was wrong."""
    options = parse(tuple(FIGURES), words)
    try:
        import_module(FIGURES[options.figure]).main(options)
    except (InputError, Failed, Unavailable) as fault:
        print(f"benchmarks: error: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
