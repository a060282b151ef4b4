"""The same learning: loss by update in float32 and bf16, ours and ``torch.nn``'s.

All begin with the same weights and read the same batches with the same rates. Without dropout
float32 curves must agree to rounding; with it they differ by what chance draws, so a second seed
of ours shows how much that is.
"""

from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.environments import interpreter
from benchmarks.figure import Curve, curves
from benchmarks.machine import facts
from benchmarks.options import Options
from benchmarks.pairs import Contender, run
from benchmarks.prepared import read_corpus
from benchmarks.report import save, table
from benchmarks.training import job_of
from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer

__all__ = ["main"]

_LAST = 50  # updates whose mean loss is compared


def main(options: Options) -> None:
    corpus = read_corpus(options.data, options.languages)
    for size in options.sizes:
        job = {**job_of(options, corpus, size), "warm": 0}
        job |= {"updates": len(job["rates"]), "weights": _first_weights(job, options.work)}
        found = {name: run(one, timeout=options.timeout) for name, one in _variants(job).items()}
        _show(options, size, found)


def _variants(job: dict[str, Any]) -> dict[str, Contender]:
    still = {"model": {**job["model"], "dropout": 0.0}}
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "ours, float32": ("ours", {}),
        "ours, float32, another seed": ("ours", {"seed": 2}),
        "ours, bf16": ("ours", {"precision": "bf16"}),
        "torch.nn, float32": ("torch_nn", {}),
        "ours, float32, no dropout": ("ours", still),
        "ours, bf16, no dropout": ("ours", {**still, "precision": "bf16"}),
        "torch.nn, float32, no dropout": ("torch_nn", still),
    }
    return {
        name: Contender(name, interpreter(peer, device=job["device"]), peer, {**job, **more})
        for name, (peer, more) in asked.items()
    }


def _first_weights(job: dict[str, Any], work: Path) -> str:
    """A new model of ours, under our names."""
    sizes = dict(job["model"])
    vocab_size = sizes.pop("vocab_size")
    model = Transformer(
        ModelConfig(source_vocab_size=vocab_size, target_vocab_size=vocab_size, **sizes)
    )
    path = work / "first-weights.npz"
    np.savez(path, **{name: weight.detach().numpy() for name, weight in model.named_parameters()})
    return str(path.resolve())


def _show(options: Options, size: str, found: dict[str, dict[str, Any]]) -> None:
    last = {name: fmean(report["losses"][-_LAST:]) for name, report in found.items()}
    rows = []
    for name, loss in last.items():
        beside = "ours, float32" + (", no dropout" if "no dropout" in name else "")
        apart = np.subtract(found[name]["losses"], found[beside]["losses"])
        rows.append([name, f"{loss:.4f}", f"{loss - last[beside]:+.4f}", f"{abs(apart).max():.4f}"])
    count = len(next(iter(found.values()))["losses"])
    shown_last = min(_LAST, count)
    title = f"Loss after {count} updates, {size}"
    columns = ["", f"mean of the last {shown_last}", "less ours in float32", "furthest apart"]
    print(f"\n{table(title, columns, rows)}\n")
    path = options.out / f"curve-{size}"
    about = facts(threads=options.threads, device=options.device)
    save(path.with_suffix(".json"), {"facts": about, "rows": rows, "runs": found})
    lines = {
        name: Curve(range(1, count + 1), report["losses"])
        for name, report in found.items()
        if "no dropout" not in name
    }
    curves(path.with_suffix(".png"), title, lines, x="update", y="loss, nats a token")
