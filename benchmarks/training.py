"""Training throughput: the same updates on the same batches by each peer, in pairs with ours.

A few updates of each peer in every setting (float32 or bf16, compiled or not) choose its fastest
setting, which then runs in pairs with ours. Utilisation is the model's operations a second on real
tokens, as a share of this machine's fastest matrix product in either precision.
"""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import Unavailable, interpreter
from benchmarks.machine import facts, training_flops
from benchmarks.options import Options
from benchmarks.pairs import Contender, Failed, Spread, paired, run, spread
from benchmarks.prepared import SIZES, Corpus, model_of, read_corpus, training_batches
from benchmarks.report import save, shown, table
from glassformer.training.schedule import noam_schedule

__all__ = ["Measured", "contender", "job_of", "main", "matrix_peak", "settings_of"]

NAMES = {
    "ours": "Glassformer",
    "torch_nn": "torch.nn.Transformer",
    "marian": "Hugging Face MarianMTModel",
    "keras": "Keras on TensorFlow",
    "eole": "eole",
    "joey": "Joey NMT",
}
COMPILES = {"torch_nn", "marian", "keras"}  # peers with a compiler that can be turned on
ONLY_FLOAT32 = {"joey"}  # its mixed precision is float16, for a GPU
_TRIAL = {"warm": 2, "updates": 4}


@dataclass(frozen=True)
class Measured:
    """The reports of all pairs with one peer, or the reason why there is none."""

    peer: str
    setting: str = ""
    reason: str = ""
    pairs: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = ()

    def ratio(self) -> Spread:
        speed = "tokens_per_second"
        return spread([ours[speed] / theirs[speed] for ours, theirs in self.pairs])

    def of(self, place: int, name: str) -> Spread:
        """The figure ``name`` of our runs (place 0) or of the peer's (place 1)."""
        return spread([pair[place][name] for pair in self.pairs])


def main(options: Options) -> None:
    corpus = read_corpus(options.data, options.languages)
    peak = matrix_peak(options)
    for size in options.sizes:
        _measure_size(options, corpus, size, peak)


def _measure_size(options: Options, corpus: Corpus, size: str, peak: dict[str, float]) -> None:
    job = job_of(options, corpus, size)
    ours = _best("ours", job, options, peak)
    if isinstance(ours, Measured):
        raise Failed(ours.reason)
    measured = [_against(ours, peer, job, options, peak) for peer in options.peers]
    flops = _operations(job) / options.updates
    title = f"Training, {size} ({corpus.name}), ours as {ours.setting}"
    print(f"\n{_table(title, measured, job, flops, peak)}\n")
    figures = {
        "facts": facts(peak=peak, threads=options.threads, device=options.device),
        "job": job,
        "flops_per_update": flops,
        "ours": ours.setting,
        "peers": [
            {"peer": peer.peer, "setting": peer.setting, "reason": peer.reason, "pairs": peer.pairs}
            for peer in measured
        ],
    }
    save(options.out / f"training-{size}.json", figures)


def job_of(options: Options, corpus: Corpus, size: str) -> dict[str, Any]:
    """The job that all programs share, without a setting."""
    number = options.warm + options.updates
    path, _ = training_batches(
        corpus, options.work / corpus.name, tokens=options.batch_tokens, number=number
    )
    model = model_of(SIZES[size])
    rates = [noam_schedule(step, d_model=model["d_model"]) for step in range(1, number + 1)]
    return {
        "batches": str(path.resolve()),
        "model": model,
        "warm": options.warm,
        "updates": options.updates,
        "rates": rates,
        "smoothing": 0.1,
        "clip": 1.0,
        "precision": "float32",
        "compiled": False,
        "threads": options.threads,
        "device": options.device,
        "seed": 1,
        "weights": None,
    }


def matrix_peak(options: Options) -> dict[str, float]:
    """Operations a second of the fastest matrix product in each precision."""
    job = {"threads": options.threads, "device": options.device}
    return run(Contender("matrix peak", interpreter("ours"), "matrix_peak", job))


def settings_of(peer: str, peak: dict[str, float]) -> list[dict[str, Any]]:
    """All settings of a peer. bf16 is left out if the machine has no units for it: there every
    program takes many times as long.
    """
    slow = peak["bf16"] < 0.5 * peak["float32"]
    precisions = ["float32"] if slow or peer in ONLY_FLOAT32 else ["float32", "bf16"]
    compiled = [False, True] if peer in COMPILES else [False]
    return [{"precision": p, "compiled": c} for p, c in product(precisions, compiled)]


def contender(peer: str, job: dict[str, Any], setting: dict[str, Any]) -> Contender:
    """A peer in one setting. Raises Unavailable if it cannot be installed."""
    words = setting["precision"] + (" compiled" if setting["compiled"] else "")
    python = interpreter(peer, device=job["device"])
    return Contender(NAMES[peer], python, peer, {**job, **setting}, words)


def _best(
    peer: str, job: dict[str, Any], options: Options, peak: dict[str, float]
) -> Contender | Measured:
    """The peer in its fastest setting, or the reason why no setting runs."""
    few = {**_TRIAL, "rates": job["rates"][: sum(_TRIAL.values())]}
    if len(few["rates"]) < sum(_TRIAL.values()):  # a run as short as a trial
        few = {}
    tried: list[tuple[float, Contender]] = []
    reason = ""
    for setting in settings_of(peer, peak):
        try:
            trial = contender(peer, {**job, **few}, setting)
            speed = run(trial, timeout=options.timeout)["tokens_per_second"]
        except (Unavailable, Failed) as fault:
            reason = str(fault)
            print(f"{NAMES[peer]}: {reason}")
            continue
        print(f"{trial}: {speed:,.0f} tokens/s in a trial")
        tried.append((speed, trial))
    if not tried:
        return Measured(peer, reason=reason)
    _, best = max(tried, key=lambda trial: trial[0])
    return replace(best, job={**best.job, **{name: job[name] for name in few}})


def _against(
    ours: Contender, peer: str, job: dict[str, Any], options: Options, peak: dict[str, float]
) -> Measured:
    best = _best(peer, job, options, peak)
    if isinstance(best, Measured):
        return best
    try:
        pairs = paired(ours, best, pairs=options.pairs, timeout=options.timeout)
    except Failed as fault:
        return Measured(peer, best.setting, reason=str(fault))
    measured = Measured(peer, best.setting, pairs=tuple(pairs))
    print(f"ours / {best}: {shown(measured.ratio(), '.2f')}")
    return measured


def _operations(job: dict[str, Any]) -> float:
    """Operations of the timed updates on real tokens."""
    timed = range(job["warm"], job["warm"] + job["updates"])
    with np.load(Path(job["batches"])) as stored:
        return sum(
            training_flops(job["model"], stored[f"source_{n}"], stored[f"target_{n}"])
            for n in timed
        )


def _table(
    title: str, measured: list[Measured], job: dict[str, Any], flops: float, peak: dict[str, float]
) -> str:
    highest = max(peak.values())
    columns = ["", "tokens/s", "ours, beside it", "ours is faster by", "of peak, theirs/ours", "MB"]
    rows = []
    for peer in measured:
        if not peer.pairs:
            rows.append([NAMES[peer.peer], peer.reason, *[""] * (len(columns) - 2)])
            continue
        tokens = peer.pairs[0][0]["tokens"] / job["updates"]
        theirs, ours = (peer.of(place, "tokens_per_second") for place in (1, 0))
        shares = [
            f"{100 * speed.median / tokens * flops / highest:.1f} %" for speed in (theirs, ours)
        ]
        memory = [f"{peer.of(place, 'peak_bytes').median / 1e6:,.0f}" for place in (1, 0)]
        rows.append(
            [
                f"{NAMES[peer.peer]}, {peer.setting}",
                shown(theirs),
                shown(ours),
                shown(peer.ratio(), ".2f"),
                " / ".join(shares),
                " / ".join(memory),
            ]
        )
    return table(title, columns, rows)
