"""A toy corpus, to turn rows of letters round; runs of seconds, and what interrupts them."""

import os
import random
import signal
from contextlib import contextmanager
from itertools import zip_longest

import pytest

from glassformer.training import loop
from glassformer.training.optimiser import NotFiniteError
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.prepare import prepare
from glassformer.training.train import new_trainer
from glassformer.training.validation import Validation

OPTIONS = {
    "preset": "tiny",
    "d_model": 16,
    "num_heads": 2,
    "d_ff": 16,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "dropout": 0.1,
    "vocab_size": 300,
    "joined_pairs": 0.0,
    "updates": 12,
    "batch_tokens": 128,
    "warmup": 10,
    "rate_factor": 1.0,
    "validations": 3,
    "beam": 1,
    "precision": "float32",
    "device": "cpu",
    "threads": 1,
}


class Recorder:
    """A reporter that keeps what it is told."""

    def __init__(self):
        self.notes, self.records, self.validations, self.closed = [], [], [], 0

    def note(self, text):
        self.notes.append(text)

    def update(self, record, *, updates, seconds_left):
        self.records.append({**record, "updates": updates, "seconds_left": seconds_left})

    def validated(self, record, validation):
        self.validations.append((dict(record), validation))

    def close(self):
        self.closed += 1

    def noted(self, words):
        return [note for note in self.notes if words in note]


@pytest.fixture
def notes():
    """Takes the lines of a preparation: ``prepare(…, note=notes.append)``."""
    return []


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def write(tmp_path):
    """Writes lines into a file of the given name; gives its path."""

    def written(name, lines):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return path

    return written


@pytest.fixture
def rows():
    """``count`` rows of letters, without a repetition."""

    def made(count, seed=0):
        draw = random.Random(seed)
        found = {}
        while len(found) < count:
            found[" ".join(draw.choices("abcdef", k=draw.randint(3, 6)))] = None
        return list(found)

    return made


@pytest.fixture
def config(tmp_path, write, rows):
    """Options for a toy run of ``count`` pairs; others by name."""

    def made(count=60, **changes):
        lines = rows(count)
        source = write("train.src", lines)
        target = write("train.tgt", [line[::-1] for line in lines])
        return TrainConfig(
            **{"pairs": (source, target), "run": tmp_path / "run", **OPTIONS, **changes}
        )

    return made


@pytest.fixture
def made(config, recorder):
    """A trainer that is ready to run."""
    open_metrics = []

    def ready(count=60, **changes):
        trainer = new_trainer(prepare(config(count, **changes)), recorder)
        open_metrics.append(trainer.metrics)
        return trainer

    yield ready
    for metrics in open_metrics:
        metrics.close()


@pytest.fixture
def interrupted(monkeypatch):
    """A signal comes during the first update in this context, which must end with Stopped."""

    @contextmanager
    def run(number=signal.SIGTERM):
        inner = loop.Learner.update

        def update(*arguments, **options):
            os.kill(os.getpid(), number)
            return inner(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(loop.Learner, "update", update)
            with pytest.raises(loop.Stopped) as stopped:
                yield stopped
        assert "stopped and saved at update 1; the same command" in str(stopped.value)

    return run


@pytest.fixture
def scripted(monkeypatch):
    """Each validation gives the next (BLEU, chrF++, loss); chrF++ left out is BLEU's number.

    ``pairs``: of how many pairs each is; left out, of all.
    """

    def script(*scores, pairs=()):
        left = zip_longest(scores, pairs)

        def validate(_model, data, *_):
            (*found, loss), count = next(left)
            if loss != loss:
                raise NotFiniteError("loss nan")
            used = data.pairs[:count]
            return Validation(loss, found[0], found[-1], 0.0, ["?"] * len(used), used)

        monkeypatch.setattr(loop, "validate", validate)

    return script
