"""Small trainings to be disturbed, and the count of what came of it.

Each training is a forked process: torch is loaded once. A disturbed run is continued with the same
command. It must end with the bits, the metrics and the files of a run that nothing disturbs.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from glassformer.tools.cli.main import main

SECONDS = 240  # of a process, which takes 5: after them it hangs
OPTIONS = {
    **{"preset": "tiny", "d-model": 16, "num-heads": 2, "d-ff": 16},
    **{"num-encoder-layers": 1, "num-decoder-layers": 1, "dropout": 0.2, "vocab-size": 300},
    **{"updates": 40, "accumulate": 2, "batch-tokens": 160, "warmup": 10, "rate-factor": 0.5},
    **{"validations": 5, "average-count": 3, "beam": 2, "patience": 0, "checkpoint-minutes": 1e-9},
    **{"precision": "float32", "device": "cpu", "threads": 1},
}  # with a checkpoint after each update
ERROR = "glassformer: error: "


class Broken(Exception):  # noqa: N818  a finding, not an error of this program
    """What went wrong: ``kind`` is lost, traceback or hang."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(kind, what)
        self.kind = kind


@dataclass
class Fault:
    """One line of the table: a kind of fault, how often it was tried, and what went wrong."""

    name: str
    tries: int = 0
    lost: int = 0
    traceback: int = 0
    hang: int = 0

    @contextmanager
    def attempt(self, tries: int = 1) -> Iterator[None]:
        """Count what goes wrong in the block, and print it."""
        self.tries += tries
        try:
            yield
        except Broken as broken:
            setattr(self, broken.kind, getattr(self, broken.kind) + 1)
            print(f"{self.name}: {': '.join(broken.args)}", flush=True)


def fork(act: Callable[[], int], log: Path) -> int:
    """The id of a new process that does ``act``; both its outputs are added to ``log``."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        descriptor = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        status = act()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def ended(process: int) -> int:
    """The exit status, once the process has ended; that of a signal is negative."""
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status == -signal.SIGALRM:
        raise Broken("hang", f"no end after {SECONDS} s")
    return status


def make_corpus(directory: Path) -> list[str]:
    """Two text files of 90 lines; the target is the source's letters backwards."""
    draw = random.Random(1)
    lines = [" ".join(draw.choices("abcdef", k=draw.randint(3, 9))) for _ in range(90)]
    for name, step in (("train.src", 1), ("train.tgt", -1)):
        (directory / name).write_text("".join(f"{line[::step]}\n" for line in lines))
    return [str(directory / "train.src"), str(directory / "train.tgt")]


class Training:
    """A run's directory, and the log of the processes that have trained in it."""

    def __init__(self, texts: list[str], directory: Path, **changes: object) -> None:
        directory.mkdir(exist_ok=True)
        self.run, self.log = directory / "run", directory / "log"
        changes = {name.replace("_", "-"): value for name, value in changes.items()}
        options = {**OPTIONS, **changes}
        self.words = ["train", *texts, "--out", str(self.run)]
        self.words += [f"--{name}={value}" for name, value in options.items() if value is not None]

    def start(self, before: Callable[[], object] = lambda: None) -> int:
        """The id of a new process that trains; ``before`` runs in it first."""

        def act() -> int:
            before()
            return main(self.words)

        self.log.write_text("")
        return fork(act, self.log)

    def finish(self, before: Callable[[], object] = lambda: None) -> float:
        """Train to the end; the seconds that it took."""
        begin = time.monotonic()
        status = ended(self.start(before))
        self.check_log()
        if status:
            raise Broken("lost", f"status {status}: {self.log.read_text()[-500:]}")
        return time.monotonic() - begin

    def check_log(self) -> None:
        said = self.log.read_text()
        if "Traceback" in said:
            raise Broken("traceback", said[-1500:])

    def check_one_line(self, status: int, words: str = "") -> None:
        """The process has ended with one line of error, which holds ``words``."""
        self.check_log()
        lines = [x for x in self.log.read_text().splitlines() if x.startswith(ERROR)]
        if status != 1 or len(lines) != 1 or words not in lines[0]:
            raise Broken("lost", f"status {status}, expected one line: {lines}")

    def wait_for(self, pattern: str) -> None:
        """Wait for a file or directory of the run."""
        deadline = time.monotonic() + SECONDS
        while not list(self.run.glob(pattern)):
            if time.monotonic() > deadline:
                raise Broken("hang", f"no {pattern}: {self.log.read_text()[-500:]}")
            time.sleep(0.005)

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.run)) for path in self.run.rglob("*"))

    def metrics(self) -> list[dict[str, object]]:
        records = map(json.loads, (self.run / "metrics.jsonl").read_text().splitlines())
        return [
            {k: v for k, v in record.items() if k not in ("seconds", "tokens_per_second")}
            for record in records
        ]

    def check_same(self, whole: "Training") -> None:
        """The run has the weights, the metrics and the files of the one that nothing disturbed."""
        if self.files() != whole.files():
            differing = set(self.files()) ^ set(whole.files())
            raise Broken("lost", f"other files: {sorted(differing)}")
        for file in sorted(whole.run.rglob("*.safetensors")):
            other = self.run / file.relative_to(whole.run)
            if "optimiser" not in file.name and file.read_bytes() != other.read_bytes():
                raise Broken("lost", f"other weights in {other}")
        if self.metrics() != whole.metrics():
            raise Broken("lost", "other metrics")
