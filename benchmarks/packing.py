"""A large corpus made ready: read and examined, its subwords learnt, tokenised and packed.

Run it as ``python -m benchmarks.packing``. The pairs are synthetic: words that are drawn by
Zipf's law. Each stage is a process of its own; its memory is what it and its workers hold together,
shared pages once (PSS), looked at five times a second.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from benchmarks.machine import facts
from benchmarks.pairs import ROOT, Failed
from benchmarks.report import save, table

__all__ = ["main", "write_corpus"]

_STAGES = {"doctor": "examined", "subwords": "subwords learnt", "pack": "tokenised and packed"}
_WORDS = 50_000
_SENTENCE = (5, 25)  # words of a side
_AT_ONCE = 20_000


def main(words: list[str] | None = None) -> int:
    """Print the table; 0 done, 1 a stage failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing", description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--vocab-size", type=int, default=8_000)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as place:
        write_corpus(Path(place), options.pairs)
        try:
            found = {stage: _measured(Path(place), stage, options) for stage in _STAGES}
        except Failed as fault:
            print(f"benchmarks: error: {fault}", file=sys.stderr)
            return 1
    rows = [
        [told, f"{found[stage]['seconds']:.1f}", f"{found[stage]['peak'] / 2**20:.0f}"]
        for stage, told in _STAGES.items()
    ]
    print(table(f"{options.pairs:,} synthetic pairs", ["stage", "seconds", "MiB"], rows))
    if options.out:
        save(options.out, {"facts": facts(), "pairs": options.pairs, "stages": found})
    return 0


def write_corpus(place: Path, pairs: int) -> None:
    """``source`` and ``target`` in ``place``, a sentence a line; the same each time."""
    draws = np.random.default_rng(1)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    odds = 1 / np.arange(1, _WORDS + 1)
    for side in ("source", "target"):
        spelt = draws.choice(letters, (_WORDS, 9))
        lengths = draws.integers(2, 10, _WORDS)
        known = np.array(["".join(s[:n]) for s, n in zip(spelt, lengths, strict=True)])
        with (place / side).open("w", encoding="utf-8", newline="\n") as file:
            for begin in range(0, pairs, _AT_ONCE):
                counts = draws.integers(*_SENTENCE, min(_AT_ONCE, pairs - begin))
                drawn = known[draws.choice(_WORDS, counts.sum(), p=odds / odds.sum())]
                sentences = np.split(drawn, counts.cumsum()[:-1])
                file.writelines(f"{' '.join(sentence)} .\n" for sentence in sentences)


def _measured(place: Path, stage: str, options: argparse.Namespace) -> dict[str, float]:
    """One stage in its own process: its seconds and its peak of memory in bytes."""
    job = place / f"{stage}.json"
    job.write_text(
        json.dumps({"place": str(place), "stage": stage, "vocab_size": options.vocab_size})
    )
    words = [sys.executable, "-m", "benchmarks.peers.prepare_ours", str(job)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        peak, pause = 0, 0.01
        while process.poll() is None:
            peak = max(peak, sum(map(_held, _with_children(process.pid))))
            time.sleep(pause)
            pause = min(0.2, 1.5 * pause)  # a short stage is seen too, a long one not held up
        assert process.stdout is not None
        said = process.stdout.read().splitlines()
    if process.returncode or not said:
        raise Failed(f"{stage} ended with status {process.returncode}")
    return {"seconds": float(said[-1]), "peak": peak}


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _with_children(int(child))


def _held(pid: int) -> int:
    """Bytes that a process holds; of a page that others hold too, its share."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    sys.exit(main())
