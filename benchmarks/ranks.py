"""One training on 1, 2 and 4 processes of torchrun: the time of an update divided, and its loss.

``python -m benchmarks.ranks SOURCE TARGET`` trains the same updates with each number of processes
on this machine's CPU. The times are medians of rank 0 over its updates:

- *input*: gathering the batch from the packed corpus;
- *computing*: the gradient of the rank's rows, and the step of the optimiser;
- *talking*: adding up the gradients, with the wait for the slowest rank;
- *share*: the padded tokens of the rank that has most, as a multiple of the mean;
- *loss*: the greatest relative difference of a loss to that on the first number of processes: in
  the first update, in ten, and in all.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.pairs import Failed
from benchmarks.report import table
from glassformer.cli.main import main as glassformer
from glassformer.training.batch_stream import BatchStream
from glassformer.training.optimiser import Learner
from glassformer.training.parallel.ranks import Ranks

__all__ = ["main"]

_WARM = 3  # updates that are not counted
_COLUMNS = ("processes", "tokens/s", "update ms", "input", "computing", "talking", "share", "loss")


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ranks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="All other options go to glassformer train.",
        allow_abbrev=False,
    )
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--updates", type=int, default=60)
    given, others = parser.parse_known_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        runs = [Path(temporary, str(size)) for size in given.processes]
        for size, run in zip(given.processes, runs, strict=True):
            options = ["--updates", str(given.updates), "--validations", "1", "--beam", "1"]
            files = [given.source, given.target]
            try:
                _train(size, run, [*files, *options, "--average-count", "1", *others])
            except Failed as fault:
                print(f"benchmarks: error: {fault}", file=sys.stderr)
                return 1
        rows = [_row(run, first=runs[0]) for run in runs]
    print(table("One training on several processes", _COLUMNS, rows))
    return 0


def _train(size: int, run: Path, words: list[str]) -> None:
    run.mkdir()
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    this = ["-m", "benchmarks.ranks", "rank", str(run)]
    command = [*launcher, "--nproc-per-node", str(size), *this, "train", *words]
    process = subprocess.run(
        [*command, "--out", str(run / "run")], capture_output=True, text=True, check=False
    )
    if process.returncode:
        lines = [x for x in process.stderr.splitlines() if x.startswith("glassformer: error: ")]
        raise Failed(f"{size} processes: {(lines or [process.stderr[-2000:]])[0]}")


def _row(run: Path, *, first: Path) -> list[str]:
    ranks = [json.loads(path.read_text()) for path in sorted(run.glob("rank-*"))]
    counted = ranks[0][_WARM:]
    input_, gradient, talking, step = (
        1000 * median(update[name] for update in counted)
        for name in ("next_batches", "gradient", "sum", "step")
    )
    update = input_ + gradient + step  # the gradient's time has that of the sum in it
    places = [[each["places"] for each in rank] for rank in ranks]
    share = mean(max(sizes) / mean(sizes) for sizes in zip(*places, strict=True))
    losses = zip(ranks[0], json.loads((first / "rank-0").read_text()), strict=True)
    apart = [abs(ours["loss"] / theirs["loss"] - 1) for ours, theirs in losses]
    return [
        str(len(ranks)),
        f"{1000 * mean(each['tokens'] for each in counted) / update:,.0f}",
        *(f"{ms:,.1f}" for ms in (update, input_, update - input_ - talking, talking)),
        f"{share:.3f}",
        ", ".join(f"{max(apart[:count]):.0e}" for count in (1, 10, len(apart))),
    ]


def rank(directory: Path, words: list[str]) -> int:
    """Train as a rank of torchrun; leave the figures of its updates in a file."""
    updates: list[dict[str, float]] = []
    figures: dict[str, float] = Counter()

    def timed(owner: Any, name: str) -> None:
        method = getattr(owner, name)

        def call(*given: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            result = method(*given, **options)
            figures[name] += time.perf_counter() - begin
            if name == "next_batches":
                figures["places"] = sum(x.source.numel() + x.target.numel() for x in result)
                figures["tokens"] = sum(x.tokens for x in result)
            if name == "step":
                figures["loss"] = result[1].item()
                updates.append(dict(figures))
                figures.clear()
            return result

        setattr(owner, name, call)

    timed(BatchStream, "next_batches")
    timed(Ranks, "sum")
    timed(Learner, "gradient")
    timed(Learner, "step")
    status = glassformer(words)
    (directory / f"rank-{os.environ['RANK']}").write_text(json.dumps(updates))
    return status


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        sys.exit(rank(Path(sys.argv[2]), sys.argv[3:]))
    sys.exit(main())
