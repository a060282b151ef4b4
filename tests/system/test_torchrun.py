"""``torchrun … -m glassformer train`` with two ranks: started, killed and continued."""

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

OPTIONS = {
    **{"preset": "tiny", "d-model": 16, "num-heads": 2, "d-ff": 16},
    **{"num-encoder-layers": 1, "num-decoder-layers": 1, "vocab-size": 300, "batch-tokens": 160},
    **{"warmup": 10, "rate-factor": 0.5, "optimiser": "adam", "beam": 1, "patience": 0},
    **{"precision": "float32", "device": "cpu", "threads": 1},
}
# As a person types it: with `--run`, which begins like `--run-path`, torchrun would refuse it.
TWO_RANKS = ["torchrun", "--standalone", "--nproc-per-node", "2", "-m", "glassformer"]
ONE_PROCESS = ["glassformer"]


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
        self.texts, self.run, self.log = texts, directory / "run", directory / "log"
        self.options = [f"--{name}={value}" for name, value in {**OPTIONS, **changes}.items()]

    def start(self, launcher):
        command = [*launcher, "train", *self.texts, "--out", str(self.run)]
        modules = {"torchrun": "torch.distributed.run", "glassformer": "glassformer"}
        command[:1] = [sys.executable, "-m", modules[command[0]]]
        with self.log.open("a") as log:
            return subprocess.Popen([*command, *self.options], stderr=log)

    def finish(self, launcher):
        assert self.start(launcher).wait(timeout=300) == 0, self.log.read_text()

    def wait_for_checkpoint(self):
        deadline = time.monotonic() + 90
        while not list(self.run.glob("checkpoints/[0-9]*")):
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.005)

    def checkpoints(self):
        return sorted(path.name for path in (self.run / "checkpoints").glob("[0-9]*"))

    def records(self, *names):
        lines = map(json.loads, (self.run / "metrics.jsonl").read_text().splitlines())
        return [{name: record[name] for name in names if name in record} for record in lines]


def rank_of(process: int, number: int) -> int:
    """The process id of a rank that torchrun has started."""
    [child] = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/environ")
        if os.access(path, os.R_OK) and is_rank(path, process, number)
    ]
    return child


def is_rank(environ: Path, parent: int, number: int) -> bool:
    try:
        fields = (environ.parent / "stat").read_text().rpartition(")")[2].split()
        return int(fields[1]) == parent and f"\0RANK={number}\0" in environ.read_text()
    except OSError:  # the process ends meanwhile
        return False


def test_two_ranks_learn_as_one_process(texts, tmp_path):
    changes = {"updates": 12, "validations": 3, "dropout": 0.0, "accumulate": 2, "both-ways": 1.0}
    runs = []
    for name, launcher in (("one", ONE_PROCESS), ("two", TWO_RANKS)):
        (tmp_path / name).mkdir()
        runs.append(Training(texts, tmp_path / name, changes))
        runs[-1].finish(launcher)

    one, two = runs
    assert two.records("update", "tokens") == one.records("update", "tokens")
    for ours, alone in zip(two.records("loss"), one.records("loss"), strict=True):
        assert ours["loss"] == pytest.approx(alone["loss"], rel=1e-4)
    log = two.log.read_text()
    assert log.count(f"bundle: {two.run}\n") == 1  # rank 0 alone speaks
    assert "Traceback" not in log


def test_killed_and_continued_it_ends_with_the_same_bits(texts, tmp_path):
    changes = {"updates": 60, "validations": 3, "dropout": 0.2}
    (tmp_path / "whole").mkdir()
    whole = Training(texts, tmp_path / "whole", changes)
    whole.finish(TWO_RANKS)
    run = Training(texts, tmp_path, changes)

    process = run.start(TWO_RANKS)
    run.wait_for_checkpoint()
    os.kill(rank_of(process.pid, 1), signal.SIGKILL)
    assert process.wait(timeout=120) != 0
    [line] = [x for x in run.log.read_text().splitlines() if x.startswith("glassformer: error")]
    assert re.fullmatch(
        r".* another rank of this training ended or hangs \(.+\); the last good checkpoint is"
        rf" {run.run}/checkpoints/{run.checkpoints()[-1]}; the same command continues from it",
        line,
    )
    assert not (run.run / "config.json").exists()
    shutil.copytree(run.run, tmp_path / "alone" / "run")
    run.finish(TWO_RANKS)

    names = ("kind", "update", "loss", "bleu", "tokens")
    assert run.records(*names) == whole.records(*names)
    weights = "model.safetensors"
    assert (run.run / weights).read_bytes() == (whole.run / weights).read_bytes()

    alone = Training(texts, tmp_path / "alone", changes)  # on another number of ranks
    alone.finish(ONE_PROCESS)
    assert "continuing from update" in alone.log.read_text()
    assert (alone.run / "config.json").exists()
