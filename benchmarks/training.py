"""Training throughput: the same updates on the same batches by each peer, in turn with ours.

A few updates of each peer in every setting (float32 or bf16, compiled or not) choose its fastest
setting, which then runs in turn with ours. Utilisation is the model's operations a second on real
tokens, as a share of this machine's fastest matrix product in either precision.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from subprocess import Popen
from typing import Any

import numpy as np

from benchmarks.environments import Failed
from benchmarks.machine import facts, training_flops
from benchmarks.pairs import Contender, fastest, ratio, rounds, run, spread
from benchmarks.prepared import SIZES, Corpus, model_of, read_corpus, training_batches
from benchmarks.report import save, shown, table
from glassformer.support.errors import counted
from glassformer.training.schedule import noam_schedule

__all__ = ["job_of", "main", "matrix_peak", "operations", "settings_of"]

NAMES = {
    "ours": "Glassformer",
    "torch_nn": "torch.nn.Transformer",
    "marian": "Hugging Face MarianMTModel",
    "keras": "Keras on TensorFlow",
    "eole": "eole",
}
COMPILES = {"torch_nn", "marian", "keras"}  # peers with a compiler that can be turned on
_COLUMNS = ["", "tokens/s", "ours, beside it", "ours is faster by", "of peak, theirs/ours", "MB"]

Reports = Sequence[dict[str, Any]]


def main(options: argparse.Namespace) -> None:
    corpus = read_corpus(options.data, options.languages)
    peak = matrix_peak(options)
    with _busy(options.busy):
        for size in options.sizes:
            _measure_size(options, corpus, size, peak)


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """A block beside which ``count`` programs of one thread compute without end."""
    programs = [Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def _measure_size(
    options: argparse.Namespace, corpus: Corpus, size: str, peak: dict[str, float]
) -> None:
    path = training_batches(
        corpus,
        options.work / corpus.name,
        tokens=options.batch_tokens,
        number=options.warm + options.updates,
    )
    job = job_of(options, path, model_of(SIZES[size]))
    flops = operations(job)
    ours = _fastest("ours", job, options, peak)
    rows, stored = [], []
    for peer in options.peers:
        try:
            best = _fastest(peer, job, options, peak)
            reports = rounds([ours, best], number=options.rounds, timeout=options.timeout)
        except Failed as fault:
            rows.append([NAMES[peer], str(fault), *[""] * (len(_COLUMNS) - 2)])
            stored.append({"peer": peer, "reason": str(fault)})
            continue
        rows.append(_row(best, *zip(*reports, strict=True), operations=flops, peak=peak))
        stored.append({"peer": peer, "setting": best.setting, "rounds": reports})
    beside = f", beside {counted(options.busy, 'busy program')}" if options.busy else ""
    title = f"Training, {size} ({corpus.name}), ours as {ours.setting}{beside}"
    print(f"\n{table(title, _COLUMNS, rows)}\n")
    figures = {
        "facts": facts(
            peak=peak, threads=options.threads, device=options.device, busy=options.busy
        ),
        "job": job,
        "flops_per_update": flops / options.updates,
        "ours": ours.setting,
        "peers": stored,
    }
    save(options.out / f"training-{size}.json", figures)


def job_of(options: argparse.Namespace, batches: Path, model: dict[str, Any]) -> dict[str, Any]:
    """The job that all programs share, without a setting."""
    steps = range(1, options.warm + options.updates + 1)
    return {
        "batches": str(batches.resolve()),
        "model": model,
        "warm": options.warm,
        "updates": options.updates,
        "rates": [noam_schedule(step, d_model=model["d_model"]) for step in steps],
        "smoothing": 0.1,
        "clip": 1.0,
        "batch_tokens": options.batch_tokens,
        "threads": options.threads,
        "device": options.device,
        "seed": 1,
    }


def matrix_peak(options: argparse.Namespace) -> dict[str, float]:
    """Operations a second of the fastest matrix product in each precision."""
    job = {"threads": options.threads, "device": options.device}
    return run(Contender("matrix peak", "ours", "matrix_peak", job))


def settings_of(peer: str, peak: dict[str, float]) -> list[dict[str, Any]]:
    """All settings of a peer. bf16 is left out if the machine has no units for it: there every
    program takes many times as long.
    """
    precisions = ["float32"] if peak["bf16"] < 0.5 * peak["float32"] else ["float32", "bf16"]
    compiled = [False, True] if peer in COMPILES else [False]
    return [{"precision": p, "compiled": c} for p, c in product(precisions, compiled)]


def _fastest(
    peer: str, job: dict[str, Any], options: argparse.Namespace, peak: dict[str, float]
) -> Contender:
    """The peer in its fastest setting. Raises Failed if none runs."""
    contenders = [
        Contender(NAMES[peer], peer, peer, {**job, **setting}, _words(**setting))
        for setting in settings_of(peer, peak)
    ]
    trial = {"warm": min(2, job["warm"]), "updates": min(4, job["updates"])}
    return fastest(contenders, "tokens_per_second", trial=trial, timeout=options.timeout)


def _words(*, precision: str, compiled: bool) -> str:
    return precision + (" compiled" if compiled else "")


def operations(job: dict[str, Any]) -> float:
    """Operations of the timed updates on real tokens."""
    timed = range(job["warm"], job["warm"] + job["updates"])
    with np.load(Path(job["batches"])) as stored:
        return sum(
            training_flops(job["model"], stored[f"source_{n}"], stored[f"target_{n}"])
            for n in timed
        )


def _row(
    peer: Contender, ours: Reports, theirs: Reports, *, operations: float, peak: dict[str, float]
) -> list[str]:
    """The row of a peer; ``ours`` and ``theirs`` have a report for each round."""
    speeds = [[report["tokens_per_second"] for report in side] for side in (theirs, ours)]
    tokens, fastest_product = ours[0]["tokens"], max(peak["float32"], peak["bf16"])
    shares = [100 * spread(side).median / tokens * operations / fastest_product for side in speeds]
    memory = [spread([report["peak_bytes"] for report in side]).median for side in (theirs, ours)]
    return [
        str(peer),
        *(shown(spread(side)) for side in speeds),
        shown(ratio(*reversed(speeds)), ".2f"),
        " / ".join(f"{share:.1f} %" for share in shares),
        " / ".join(f"{peak_bytes / 1e6:,.0f}" for peak_bytes in memory),
    ]
