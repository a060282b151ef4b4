"""What known mistakes of the lessons cost: `glassformer learn train`, with a mistake and without.

The same seed stands against the same seed. A cost is sure if each translator with the mistake is
worse than each one without. Results stay in a file, so that the same call goes on. `measured.json`
is the file of the lessons' check, `src/glassformer/tools/learn/measured.json`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean

from benchmarks.environments import Failed
from benchmarks.machine import facts
from benchmarks.report import save, table
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.measured import RIGHT

__all__ = ["MISTAKES", "main"]

# Those whose cost surprises: they raise no error, and most translators with them still learn.
MISTAKES = (
    "causal-missing",
    "causal-next-visible",
    "scale-missing",
    "scale-without-root",
    "scale-of-d_model",
    "positions-discarded",
    "embedding-not-scaled",
    "smoothing-missing",
    "dropout-missing",
    "noam-no-warmup",
    "residual-missing",
    "add-never-norm",
    "add-norms-output",
    "feed-forward-no-relu",
    "heads-one-projection",
    "heads-one-for-keys-and-values",
    "decoder-memory-mask-missing",
    "attention-mask-after-softmax",
    "whole-target-positions-missing",
    "split-by-view",
    "decoder-cross-first",
    "decoder-attention-shared",
    "encoder-mask-causal",
    "softmax-twice",
    "positions-exponent-i",
    "positions-exponent-sign",
    "loss-sum",
    "mean-of-sentences",
    "projection-scaled",
    "encoder-attention-missing",
    "heads-output-missing",
    "positions-embedding-scaled-again",
    "causal-self-hidden",
)


@dataclass(frozen=True)
class Run:
    """One training: the percentage of right test phrases, and the last validation's loss."""

    mistake: str
    seed: int
    score: float
    loss: float


def main(options: argparse.Namespace) -> None:
    work = options.work / "mistakes"
    folder = Folder(work / "lessons")
    folder.make()  # nothing is learned in it: all parts but the mistakes' are the package's
    wanted = [(RIGHT, seed + 1) for seed in range(options.right_seeds)]
    wanted += [(name, seed + 1) for name in options.mistakes for seed in range(options.seeds)]
    file = work / f"{options.epochs:g} epochs.jsonl"
    known = {(run.mistake, run.seed): run for run in _read(file)}
    missing = [run for run in wanted if run not in known]
    with ThreadPoolExecutor(options.threads) as pool, file.open("a", encoding="utf-8") as results:
        for run in pool.map(lambda run: _train(folder, options.epochs, *run), missing):
            results.write(json.dumps(asdict(run)) + "\n")
            results.flush()
            known[run.mistake, run.seed] = run
            print(run, flush=True)
    runs = [known[run] for run in wanted]
    columns = ["mistake", "% right", "cost, by seed", "sure", "validation loss"]
    print(f"\n{table('What mistakes cost', columns, list(_rows(runs)))}\n")
    save(options.out / "mistakes.json", {"facts": facts(), "runs": list(map(asdict, runs))})
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(own)}" for name, own in _figures(runs))
    (options.out / "measured.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _read(file: Path) -> list[Run]:
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return [Run(**json.loads(line)) for line in lines]


def _train(folder: Folder, epochs: float, mistake: str, seed: int) -> Run:
    """One training on one core."""
    out = folder.path.parent / f"{mistake}-{seed}"
    words = [sys.executable, "-m", "glassformer", "learn", "train", str(folder.path)]
    words += ["--epochs", str(epochs), "--seed", str(seed), "--out", str(out)]
    words += [] if mistake == RIGHT else ["--mistake", mistake]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    score = re.search(r"│ all +│ +\d+ +│ +(\S+) %", done.stdout)
    if not score:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip()[-500:]}")
    records = map(json.loads, (out / "metrics.jsonl").read_text("utf-8").splitlines())
    losses = [record["loss"] for record in records if record["kind"] == "validation"]
    return Run(mistake, seed, float(score[1]), losses[-1])


def _by_mistake(runs: Sequence[Run]) -> dict[str, list[Run]]:
    runs_of: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        runs_of[run.mistake].append(run)
    return runs_of


def _figures(runs: Sequence[Run]) -> Iterator[tuple[str, dict[str, object]]]:
    """What the check says of a mistake: the file `measured.json` of the lessons."""
    for mistake, own in _by_mistake(runs).items():
        loss = round(mean(run.loss for run in own), 4)
        yield mistake, {"right": [run.score for run in own], "loss": loss}


def _rows(runs: Sequence[Run]) -> Iterator[list[str]]:
    """A row for the right parts, then one for each mistake, the greatest cost first."""
    by_mistake = _by_mistake(runs)
    right = {run.seed: run for run in by_mistake.pop(RIGHT)}
    scores = [run.score for run in right.values()]
    loss = mean(run.loss for run in right.values())
    yield [RIGHT, f"{mean(scores):.1f} ({min(scores)} to {max(scores)})", "", "", f"{loss:.3f}"]
    for mistake, own in sorted(by_mistake.items(), key=lambda item: mean(r.score for r in item[1])):
        costs = ", ".join(f"{run.score - right[run.seed].score:+.1f}" for run in own)
        sure = all(run.score < min(scores) for run in own)
        loss = mean(run.loss for run in own)
        score = mean(run.score for run in own)
        yield [mistake, f"{score:.1f}", costs, "yes" if sure else "no", f"{loss:.3f}"]
