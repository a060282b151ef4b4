"""The command line of the benchmarks."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import cores
from benchmarks.prepared import SIZES
from glassformer.errors import nearest

__all__ = ["PEERS", "Options", "parse"]

HERE = Path(__file__).resolve().parent
PEERS = ("torch_nn", "marian", "keras", "eole", "joey")


@dataclass(frozen=True)
class Options:
    """The options of one benchmark; :func:`parse` describes each."""

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
    run: Path
    minutes: float
    clients: tuple[int, ...]
    seconds: float

    @property
    def work(self) -> Path:
        """The directory of intermediate files."""
        return HERE / ".work"


def parse(figures: Sequence[str], words: Sequence[str] | None = None) -> Options:
    """Options from the command line; a wrong call exits with status 2."""
    parser = _parser(figures)
    values = vars(parser.parse_args(words))
    for size in values["sizes"]:
        if size not in SIZES:
            parser.error(f"--sizes {size}: expected {', '.join(SIZES)}{nearest(size, SIZES)}")
    if min(values["beams"]) < 1:
        parser.error(f"--beams {min(values['beams'])}: a beam is at least 1, which is greedy")
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Options(**{**values, **lists})


def _parser(figures: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures one figure of docs/measurements.md again, peers included.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("figure", choices=figures, help="the figure to measure")
    add("--data", type=Path, help="folder with train.en[.gz] …; default: the phrasebook")
    add("--languages", nargs=2, default=["en", "de"], help="source and target, as in file names")
    add("--out", type=Path, default=HERE / "results", help="folder of the JSON files")
    add("--threads", type=int, default=cores(), help="CPU threads of each program")
    add("--device", default="cpu", help="cpu or cuda")
    add("--pairs", type=int, default=5, help="rounds in which all programs run in turn")
    add("--timeout", type=float, default=3600.0, help="seconds after which a run has failed")
    add("--bundle", type=Path, help="decoding, serving: a trained translator")
    add("--sentences", type=int, default=1000, help="decoding, serving: number of sentences")
    _add_training(parser.add_argument_group("training"))
    group = parser.add_argument_group("decoding")
    group.add_argument("--beams", nargs="+", type=int, default=[1, 5], help="1 is greedy search")
    ways = ("file", "single")
    group.add_argument(
        "--ways",
        nargs="+",
        default=ways,
        choices=ways,
        help="all at once, single sentences",
    )
    group = parser.add_argument_group("quality")
    run = HERE / ".work" / "run"
    group.add_argument("--run", type=Path, default=run, help="directory of the training run")
    group.add_argument("--minutes", type=float, default=0.0, help="length of the training; 0: full")
    group = parser.add_argument_group("serving")
    clients = [1, 8, 64]
    group.add_argument("--clients", nargs="+", type=int, default=clients, help="clients at once")
    group.add_argument("--seconds", type=float, default=20.0, help="length of each load")
    return parser


def _add_training(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--sizes", nargs="+", default=["small"], help="models: tiny, small, base, big")
    add("--peers", nargs="+", default=PEERS, choices=PEERS, help="programs to compare with")
    add("--updates", type=int, default=20, help="timed updates of a run")
    add("--warm", type=int, default=5, help="untimed updates before them")
    add("--batch-tokens", type=int, default=4096, help="tokens of a batch, padding included")
