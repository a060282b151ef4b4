"""What may be said to a benchmark."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import cores

__all__ = ["PEERS", "Options", "parser"]

HERE = Path(__file__).resolve().parent
PEERS = ("torch_nn", "marian", "keras", "eole", "joey")


@dataclass(frozen=True)
class Options:
    """Settled options; see :func:`parser` for what each is."""

    figure: str
    data: Path | None
    languages: tuple[str, str]
    out: Path
    sizes: tuple[str, ...]
    peers: tuple[str, ...]
    pairs: int
    updates: int
    warm: int
    batch_tokens: int
    threads: int
    device: str
    timeout: float
    bundle: Path | None
    sentences: int
    beams: tuple[int, ...]
    ways: tuple[str, ...]
    axes: tuple[str, ...]
    run: Path
    minutes: float

    @property
    def work(self) -> Path:
        """Where files between the steps are."""
        return HERE / ".work"


def parser(figures: tuple[str, ...]) -> argparse.ArgumentParser:
    """The command line; ``--help`` shows every default."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Re-run a figure of README beside its peers.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = made.add_argument
    add("figure", choices=(*figures, "all"), help="what to measure")
    add("--data", type=Path, help="folder with train.en[.gz] …; without it the phrasebook")
    add("--languages", nargs=2, default=("en", "de"), help="source and target in those names")
    add("--out", type=Path, default=HERE / "results", help="where JSON and pictures go")
    add("--sizes", nargs="+", default=["small"], help="of the model: tiny, small, base, big")
    add("--peers", nargs="+", default=list(PEERS), choices=PEERS, help="training: who else")
    add("--pairs", type=int, default=5, help="how often each pair is run")
    add("--updates", type=int, default=20, help="updates of a run")
    add("--warm", type=int, default=5, help="updates before them that do not count")
    add("--batch-tokens", type=int, default=4096, help="places of a batch, padding counted")
    add("--threads", type=int, default=cores(), help="CPU threads of each program")
    add("--device", default="cpu", help="cpu or cuda")
    add("--timeout", type=float, default=3600.0, help="seconds after which a run is given up")
    add("--bundle", type=Path, help="a trained translator for decoding")
    add("--sentences", type=int, default=1000, help="decoding: how many are translated")
    add("--beams", nargs="+", type=int, default=[1, 5], help="decoding: 1 is greedy search")
    add("--ways", nargs="+", default=["file", "one"], choices=("file", "one"),
        help="decoding: all sentences at once, one at a time")  # fmt: skip
    add("--axes", nargs="+", default=["all"], help="growth: which sizes to vary")
    add("--run", type=Path, default=HERE / ".work" / "run", help="quality, recipes: where to train")
    add("--minutes", type=float, default=0.0, help="the same: trainings fitted to this time")
    return made
