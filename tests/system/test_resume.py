"""A run that is killed at any moment and continued is, to the bit, one that never was.

Each run is a process of its own. It is killed from within, just before the n-th call of a
function, so that the moment is exact: with half a checkpoint on the disk, between two reports, with
half a bundle.
"""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.processes import CONTEXT

OPTIONS = {
    "preset": "tiny",
    "d_model": 16,
    "num_heads": 2,
    "d_ff": 16,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "dropout": 0.2,
    "vocab_size": 300,
    "updates": 60,
    "accumulate": 2,
    "batch_tokens": 160,
    "warmup": 10,
    "rate_factor": 0.5,
    "validations": 7,
    "average_count": 3,
    "beam": 2,
    "precision": "float32",
    "device": "cpu",
    "threads": 2,
    "patience": 0,
}

CHILD = """
import importlib, os, signal, sys

sys.stderr = open({log!r}, "a")
from glassformer.training.setup import machine
machine._FEWEST_OPERATIONS = 0  # so that shares of a batch are killed too
if {kill!r}:
    module, name, count = {kill!r}
    owner = importlib.import_module(module)
    *path, name = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    inner, calls = getattr(owner, name), []

    def counted(*arguments, **named):
        calls.append(1)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*arguments, **named)

    setattr(owner, name, counted)
from glassformer.tools.cli.main import main
sys.exit(main({words!r}))
"""

# Where a run is killed: module, function, before which call of it in that process.
# `make test-faults` kills at 200 other places.
KILLS = [
    ("glassformer.support.files", "flush_directory", 1),  # packed pairs
    ("glassformer.support.files", "flush_directory", 3),  # a checkpoint
    ("glassformer.training.loop", "Learner.update", 33),
    ("glassformer.bundle", "write_atomically", 2),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    directory = tmp_path_factory.mktemp("corpus")
    draw = random.Random(1)
    lines = [" ".join(draw.choices("abcdef", k=draw.randint(3, 9))) for _ in range(90)]
    (directory / "train.src").write_text("".join(f"{line}\n" for line in lines))
    (directory / "train.tgt").write_text("".join(f"{line[::-1]}\n" for line in lines))
    return directory


class Runner:
    """Starts ``glassformer train`` with the toy corpus in processes of their own."""

    def __init__(self, corpus, directory, changes):
        self.run = directory / "run"
        self.log = directory / "log"
        options = {"run": self.run, **OPTIONS, **changes}
        self.words = ["train", str(corpus / "train.src"), str(corpus / "train.tgt")]
        for name, value in options.items():
            self.words += [f"--{name.replace('_', '-')}", str(value)]

    def start(self, kill=None):
        code = CHILD.format(log=str(self.log), kill=kill, words=self.words)
        process = CONTEXT.Process(target=exec, args=(code, {}))
        process.start()
        return process

    def __call__(self, kill=None):
        """The exit status of a whole process."""
        process = self.start(kill)
        process.join(timeout=100)
        assert process.exitcode is not None, self.log.read_text()
        return process.exitcode

    def finish(self):
        assert self() == 0, self.log.read_text()

    def weights(self):
        return (self.run / "model.safetensors").read_bytes()

    def metrics(self):
        records = map(json.loads, (self.run / "metrics.jsonl").read_text().splitlines())
        return [
            {k: v for k, v in record.items() if k not in ("seconds", "tokens_per_second")}
            for record in records
        ]


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A run that nothing interrupts."""
    runner = Runner(corpus, tmp_path_factory.mktemp("whole"), {})
    runner.finish()
    return runner


def test_killed_again_and_again(whole, corpus, tmp_path):
    # A checkpoint after each update: killed in the middle between two reports, too.
    run = Runner(corpus, tmp_path, {"checkpoint_minutes": 1e-9})

    for kill in KILLS:
        assert run(kill) == -signal.SIGKILL, (kill, run.log.read_text())
        assert not (run.run / "config.json").exists()
    run.finish()

    assert run.weights() == whole.weights()
    assert run.metrics() == whole.metrics()


def test_a_signal_saves_first(whole, corpus, tmp_path):
    run = Runner(corpus, tmp_path, {})
    process = run.start()
    wait_for(run.run / "metrics.jsonl", process)
    os.kill(process.pid, signal.SIGTERM)
    process.join(timeout=60)

    assert process.exitcode == 143, run.log.read_text()
    said = [line for line in run.log.read_text().splitlines() if "stopped and saved" in line]
    assert len(said) == 1
    update = int(said[0].split("update ")[1].split(";")[0])
    assert (run.run / "checkpoints" / f"{update:08d}").is_dir()
    assert "Traceback" not in run.log.read_text()
    run.finish()
    assert f"continuing from update {update}\n" in run.log.read_text()
    assert run.weights() == whole.weights()
    assert run.metrics() == whole.metrics()


def wait_for(path: Path, process):
    """Wait until the file holds its first line."""
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_bytes()):
        assert process.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_finished_run_is_finished_again_without_an_update(whole):
    weights, metrics = whole.weights(), (whole.run / "metrics.jsonl").read_bytes()
    checkpoints = sorted((whole.run / "checkpoints").iterdir())
    (whole.run / "README.md").unlink()  # as if killed while the bundle was written

    assert whole(("glassformer.training.loop", "Learner.update", 1)) == 0

    assert whole.weights() == weights
    assert (whole.run / "metrics.jsonl").read_bytes() == metrics
    assert sorted((whole.run / "checkpoints").iterdir()) == checkpoints
    assert (whole.run / "README.md").exists()
