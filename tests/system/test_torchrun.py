"""Two ranks train: as one process does, killed and continued, and under torchrun itself.

Under torchrun a killed training goes on. The others fork, with the variables that torchrun sets;
``make test-faults`` kills ranks under torchrun.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import as_torchrun, start

OPTIONS = {
    **{"preset": "tiny", "d-model": 16, "num-heads": 2, "d-ff": 16},
    **{"num-encoder-layers": 1, "num-decoder-layers": 1, "vocab-size": 300, "batch-tokens": 160},
    **{"warmup": 10, "rate-factor": 0.5, "optimiser": "adam", "beam": 1, "patience": 0},
    **{"precision": "float32", "device": "cpu", "threads": 1},
}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    directory = tmp_path_factory.mktemp("texts")
    draw = random.Random(1)
    lines = [" ".join(draw.choices("abcdef", k=draw.randint(3, 9))) for _ in range(90)]
    (directory / "train.src").write_text("".join(f"{line}\n" for line in lines))
    (directory / "train.tgt").write_text("".join(f"{line[::-1]}\n" for line in lines))
    return [str(directory / "train.src"), str(directory / "train.tgt")]


class Training:
    """A run directory, and the log of all processes that have trained in it."""

    def __init__(self, texts, directory, changes):
        directory.mkdir(exist_ok=True)
        self.run, self.log = directory / "run", directory / "log"
        # As a person types it: `--run` begins like `--run-path`, so that torchrun would refuse it.
        self.words = ["train", *texts, "--out", str(self.run)]
        self.words += [f"--{name}={value}" for name, value in {**OPTIONS, **changes}.items()]

    def start(self, ranks):
        """Processes that fork: one for each rank."""
        with self.log.open("a") as log, Path(os.devnull).open("r+") as null:
            streams = null.fileno(), null.fileno(), log.fileno()
            environments = as_torchrun(ranks) if ranks > 1 else [{}]
            return [start(self.words, *streams, environment=each) for each in environments]

    def finish(self, ranks=1):
        assert [ended(process) for process in self.start(ranks)] == [0] * ranks, (
            self.log.read_text()
        )

    def finish_under_torchrun(self):
        command = [*TORCHRUN, "-m", "glassformer", *self.words]
        with self.log.open("a") as log:
            assert subprocess.run(command, stderr=log, timeout=300).returncode == 0, (
                self.log.read_text()
            )

    def wait_for_checkpoint(self):
        deadline = time.monotonic() + 90
        while not list(self.run.glob("checkpoints/[0-9]*")):
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.005)

    def checkpoints(self):
        return sorted(path.name for path in (self.run / "checkpoints").glob("[0-9]*"))

    def records(self, *names):
        lines = map(json.loads, (self.run / "metrics.jsonl").read_text().splitlines())
        records = [record for record in lines if record["kind"] != "score"]
        return [{name: record[name] for name in names if name in record} for record in records]


def ended(process):
    """The exit status."""
    process.join(timeout=300)
    return process.exitcode


@pytest.mark.parametrize("batches", ["padded", "packed"])
def test_two_ranks_learn_as_one_process(texts, tmp_path, batches):
    changes = {"updates": 12, "validations": 3, "dropout": 0.0, "accumulate": 2, "both-ways": 1.0}
    changes["batches"] = batches
    one, two = (Training(texts, tmp_path / name, changes) for name in ("one", "two"))
    one.finish()
    two.finish(ranks=2)

    assert two.records("update", "tokens") == one.records("update", "tokens")
    for ours, alone in zip(two.records("loss"), one.records("loss"), strict=True):
        assert ours["loss"] == pytest.approx(alone["loss"], rel=1e-4)
    log = two.log.read_text()
    assert log.count(f"bundle: {two.run}\n") == 1  # rank 0 alone speaks
    assert "Traceback" not in log


def test_killed_and_continued_it_ends_with_the_same_bits(texts, tmp_path):
    changes = {"updates": 60, "validations": 3, "dropout": 0.2}
    whole = Training(texts, tmp_path / "whole", changes)
    whole.finish(ranks=2)
    run = Training(texts, tmp_path, changes)

    waiting, killed = run.start(ranks=2)
    run.wait_for_checkpoint()
    killed.kill()
    assert (ended(killed), ended(waiting)) == (-signal.SIGKILL, 1)
    [line] = [x for x in run.log.read_text().splitlines() if x.startswith("glassformer: error")]
    assert re.fullmatch(
        r".* another rank of this training ended or hangs \(.+\); the last good checkpoint is"
        rf" {run.run}/checkpoints/{run.checkpoints()[-1]}; the same command continues from it",
        line,
    )
    assert not (run.run / "config.json").exists()
    shutil.copytree(run.run, tmp_path / "alone" / "run")
    run.finish_under_torchrun()

    names = ("kind", "update", "loss", "bleu", "tokens")
    assert run.records(*names) == whole.records(*names)
    weights = "model.safetensors"
    assert (run.run / weights).read_bytes() == (whole.run / weights).read_bytes()

    alone = Training(texts, tmp_path / "alone", changes)  # on another number of ranks
    alone.finish()
    assert "continuing from update" in alone.log.read_text()
    assert (alone.run / "config.json").exists()
