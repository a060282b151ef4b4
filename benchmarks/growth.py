"""How cost grows: with the width, the layers, the vocabulary, sentences, batch, beam, corpus.

One thing is doubled at a time. The slope on log scales is the exponent: 1 = twice as much takes
twice as long. Values are run in turn, so that a slow minute slows all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from benchmarks.environments import interpreter
from benchmarks.figure import Curve, growth
from benchmarks.machine import facts
from benchmarks.options import Options
from benchmarks.pairs import Contender, Failed, rounds
from benchmarks.prepared import SIZES, model_of, write_batches
from benchmarks.report import save, table
from glassformer.errors import nearest

__all__ = ["AXES", "main", "slope"]

Wanted = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """What is varied, over which values, and what is measured for each of them."""

    name: str
    values: tuple[int, ...]
    measured: str = "seconds_per_update"
    of_model: tuple[str, ...] = ()
    fixed: Wanted = field(default_factory=dict)


AXES = {
    "d_model": Axis("d_model", (64, 128, 256, 512), of_model=("d_model",)),
    "d_ff": Axis("d_ff", (256, 512, 1024, 2048), of_model=("d_ff",)),
    "layers": Axis("layers", (1, 2, 4, 8), of_model=("num_encoder_layers", "num_decoder_layers")),
    "vocabulary": Axis("vocabulary", (2000, 4000, 8000, 16000, 32000), of_model=("vocab_size",)),
    # The same number of tokens in longer and longer sentences: what remains is attention's.
    "length": Axis("sentence length", (8, 16, 32, 64, 128), fixed={"tokens": 4096}),
    "batch": Axis("sentences of a batch", (8, 16, 32, 64, 128), fixed={"length": 16}),
    "beam": Axis("beam", (1, 2, 4, 8, 16), measured="seconds_per_token"),
    "target": Axis("decoded tokens", (16, 32, 64, 128), measured="seconds_per_sentence"),
    "corpus": Axis("training pairs", (2000, 4000, 8000, 16000), measured="seconds"),
}


def main(options: Options) -> None:
    names = list(AXES) if "all" in options.axes else list(options.axes)
    for name in names:
        if name not in AXES:
            raise Failed(f"--axes {name}: expected {', '.join(AXES)}{nearest(name, AXES)}")
    panels, rows, stored = {}, [], {}
    about = facts(threads=options.threads, device=options.device)
    for name in names:
        axis = AXES[name]
        contenders = [_contender(name, axis, value, options) for value in axis.values]
        found = rounds(contenders, number=options.pairs, timeout=options.timeout)
        seconds = [
            median(one_round[place][axis.measured] for one_round in found)
            for place in range(len(contenders))
        ]
        found_slope = slope(axis.values, seconds)
        panels[axis.name] = (Curve(axis.values, [1000 * s for s in seconds]), found_slope)
        cells = ", ".join(
            f"{v:,}: {1000 * s:,.3g}" for v, s in zip(axis.values, seconds, strict=True)
        )
        rows.append([axis.name, axis.measured.replace("_", " "), cells, f"{found_slope:.2f}"])
        stored[name] = {"values": axis.values, "rounds": found}
        save(options.out / "growth.json", {"facts": about, "axes": stored})
        print(f"{axis.name}: slope {found_slope:.2f}", flush=True)
    title = f"How cost grows ({options.sizes[0]} but for what is varied)"
    print(f"\n{table(title, ['', 'measured', 'milliseconds', 'slope'], rows)}\n")
    growth(options.out / "growth.png", title, panels, unit="milliseconds")


def slope(values: Sequence[float], seconds: Sequence[float]) -> float:
    """The exponent of the power law that fits best on log scales.

    >>> round(slope([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(values), np.log(seconds), 1)[0])


def _contender(name: str, axis: Axis, value: int, options: Options) -> Contender:
    model = model_of(SIZES[options.sizes[0]])
    model |= dict.fromkeys(axis.of_model, value)
    common = {
        "model": model,
        "weights": None,
        "threads": options.threads,
        "device": options.device,
        "seed": 1,
    }
    if name in ("beam", "target", "corpus"):
        job = {**common, "what": name, "value": value}
        return Contender(axis.name, interpreter("ours"), "grow_ours", job, str(value))
    length = value if name == "length" else axis.fixed.get("length", 16)
    rows = (
        value if name == "batch" else axis.fixed.get("tokens", options.batch_tokens) // (2 * length)
    )
    path = options.work / f"growth-{name}-{value}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    number = options.warm + options.updates
    write_batches(path, _random_batches(max(1, rows), length, model["vocab_size"], number))
    job = {
        **common,
        "batches": str(path.resolve()),
        "warm": options.warm,
        "updates": options.updates,
        "rates": [1e-4] * number,
        "smoothing": 0.1,
        "clip": 1.0,
        "precision": "float32",
        "compiled": False,
    }
    return Contender(axis.name, interpreter("ours"), "ours", job, str(value))


def _random_batches(
    rows: int, length: int, vocab_size: int, number: int
) -> Iterator[tuple[Any, Any, Any]]:
    """Sentences without padding, of random words."""
    generator = np.random.default_rng(1)
    for _ in range(number):
        source, labels = generator.integers(4, vocab_size, (2, rows, length))
        source[:, -1] = labels[:, -1] = 3
        target = np.concatenate((np.full((rows, 1), 2), labels[:, :-1]), axis=1)
        yield source, target, labels
