"""The command line of the benchmarks: one parser for each figure."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu import HALVES, STAGES
from benchmarks.machine import cores
from benchmarks.mistakes import MISTAKES
from benchmarks.prepared import SIZES

__all__ = ["FIGURES", "PEERS", "parse"]

HERE = Path(__file__).resolve().parent
PEERS = ("torch_nn", "marian", "keras", "eole")


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Options from the command line; a wrong call exits with status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures one figure of docs/measurements.md again, peers included.",
        epilog="python -m benchmarks FIGURE --help shows the options of a figure.",
    )
    commands = parser.add_subparsers(dest="figure", metavar="FIGURE", required=True)
    formatter = argparse.ArgumentDefaultsHelpFormatter
    for name, (text, add_options) in FIGURES.items():
        command = commands.add_parser(name, help=text, description=text, formatter_class=formatter)
        _add_common(command, data_needed=name == "quality")
        add_options(command)
    return parser.parse_args(words)


def _add_common(parser: argparse.ArgumentParser, *, data_needed: bool) -> None:
    add = parser.add_argument
    data = "folder with train.en[.gz], val.en and test.en" + (
        "" if data_needed else "; None: the phrasebook"
    )
    add("--data", type=Path, required=data_needed, help=data)
    add("--languages", nargs=2, default=["en", "de"], help="source and target, as in file names")
    add("--out", type=Path, default=HERE / "results", help="folder of the JSON files")
    add("--work", type=Path, default=HERE / ".work", help="folder of intermediate files")
    add("--threads", type=int, default=cores(), help="CPU threads of each program")


def _add_rounds(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--device", default="cpu", help="cpu or cuda")
    add("--rounds", type=int, default=5, help="rounds in which all programs run in turn")
    add("--timeout", type=float, default=3600.0, help="seconds after which a run has failed")


def _add_bundle(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--bundle", type=Path, required=True, help="a trained translator")
    add("--sentences", type=int, default=1000, help="number of test sentences")


def _add_training(parser: argparse.ArgumentParser) -> None:
    _add_rounds(parser)
    add = parser.add_argument
    add("--sizes", nargs="+", default=["small"], choices=SIZES, help="models")
    add("--peers", nargs="+", default=PEERS, choices=PEERS, help="programs to compare with")
    add("--updates", type=int, default=20, help="timed updates of a run")
    add("--busy", type=int, default=0, help="programs beside them that compute without end")
    add("--warm", type=int, default=5, help="untimed updates before them")
    add("--batch-tokens", type=int, default=4096, help="tokens of a batch, padding included")


def _add_decoding(parser: argparse.ArgumentParser) -> None:
    _add_rounds(parser)
    _add_bundle(parser)
    ways = ["file", "single"]
    add = parser.add_argument
    add("--beams", nargs="+", type=_beam, default=[1, 5], help="1 is greedy search")
    add("--ways", nargs="+", default=ways, choices=ways, help="all at once, single sentences")


def _beam(word: str) -> int:
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word}: a beam is at least 1, which is greedy")
    return int(word)


def _add_quality(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--run", type=Path, default=HERE / ".work" / "run", help="directory of the training run")
    add("--minutes", type=float, default=0.0, help="length of the training; 0: full")


def _add_serving(parser: argparse.ArgumentParser) -> None:
    _add_bundle(parser)
    add = parser.add_argument
    add("--clients", nargs="+", type=int, default=[1, 8, 64], help="clients at once")
    add("--engine", default="auto", help="auto, torch or ctranslate2")
    add("--beam", type=_beam, default=5, help="1 is greedy search")
    add("--seconds", type=float, default=20.0, help="length of each load")


def _add_page(parser: argparse.ArgumentParser) -> None:
    _add_bundle(parser)
    add = parser.add_argument
    add("--beams", nargs="+", type=_beam, default=[1, 5], help="1 is greedy search")
    add("--rounds", type=int, default=3, help="rounds in which both ways run in turn")
    add("--browser", default="chromium", help="the program of Chromium")


def _add_gpu(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--half", type=int, choices=HALVES, help="the stages of one half")
    which.add_argument("--stages", nargs="+", choices=STAGES, help="stages, each alone")
    add("--device", default="cuda", help="cuda, or cpu with --tiny")
    add("--tiny", action="store_true", help="toy sizes, which try each stage without a GPU")
    add("--bundle", type=Path, help="a trained translator to decode; None: random base weights")
    add("--warm", type=int, default=30, help="untimed updates")
    add("--updates", type=int, default=100, help="timed updates after them")
    add("--sentences", type=int, default=1000, help="number of sentences to decode")
    add("--seconds", type=float, default=290.0, help="time for all stages of this call")


def _add_mistakes(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--mistakes", nargs="+", default=MISTAKES, help="ids of the lessons' known mistakes")
    add("--epochs", type=float, default=1.0, help="how often a training reads the phrases")
    add("--seeds", type=int, default=3, help="trainings with each mistake")
    add("--right-seeds", type=int, default=5, help="trainings with right parts")


FIGURES = {
    "training": ("tokens/s of training beside other programs", _add_training),
    "decoding": ("sentences/s of one translator by all engines", _add_decoding),
    "quality": ("minutes of train, from text files to a scored bundle", _add_quality),
    "gpu": ("one GPU: facts, training and decoding beside peers, a profile", _add_gpu),
    "mistakes": ("what known mistakes of the lessons cost a translator", _add_mistakes),
    "page": ("tokens/s of a page that holds its translator", _add_page),
    "serving": ("sentences/s and waiting times of the server", _add_serving),
}
