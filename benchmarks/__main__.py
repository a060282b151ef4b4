"""``python -m benchmarks FIGURE``: measures one figure, prints its table and writes a JSON file."""

import sys
from collections.abc import Sequence
from importlib import import_module

from benchmarks.environments import Failed
from benchmarks.options import parse
from glassformer.support.errors import InputError

__all__ = ["main"]


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 0 done, 1 the work failed, 2 the call was wrong."""
    options = parse(words)
    try:
        import_module(f"benchmarks.{options.figure}").main(options)
    except (InputError, Failed) as fault:
        print(f"benchmarks: error: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
