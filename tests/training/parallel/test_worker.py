"""Worker processes beside the first: they change nothing but the time, and end with it."""

import os
import signal
import subprocess

import pytest
import torch

from glassformer.errors import InputError
from glassformer.training import loop as module
from glassformer.training.checkpoint import checkpoints, load_checkpoint
from glassformer.training.parallel import ranks as parallel

TWO = {"workers": 2, "threads": 2, "updates": 4, "validations": 2}


@pytest.fixture
def workers(monkeypatch):
    """The worker processes that were started here."""
    started = []
    inner = subprocess.Popen

    def kept(*arguments, **options):
        started.append(inner(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(parallel.subprocess, "Popen", kept)
    yield started
    assert all(worker.poll() is not None for worker in started)


def weights(model):
    # Softmax ignores the keys' biases, so their gradient is rounding, and Adam makes steps of it.
    return {n: w for n, w in model.state_dict().items() if not n.endswith("key.bias")}


def test_two_learn_what_one_does_and_go_on_as_two(made, tmp_path, workers, monkeypatch):
    options = {**TWO, "dropout": 0.0, "accumulate": 2, "optimiser": "adam", "both_ways": 1.0}
    one = made(**{**options, "workers": 1, "run": tmp_path / "one"})
    one.run()
    assert not workers

    monkeypatch.setattr(module, "quickest_workers", lambda *_: 2)
    first = made(**{**options, "workers": 0})
    inner = module.update

    def interrupted(*arguments, **named):
        if first.state.update == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return inner(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(module, "update", interrupted)
        with pytest.raises(module.Stopped, match="saved at update 3"):
            first.run()
    monkeypatch.setattr(module, "quickest_workers", lambda *_: 1 / 0)  # it is measured once
    second = made(**{**options, "workers": 0})
    second.run()

    assert len(workers) == 2
    assert [worker.returncode for worker in workers] == [0, 0]
    assert second.state.tokens == one.state.tokens
    torch.testing.assert_close(weights(second.model), weights(one.model), rtol=1e-3, atol=1e-5)


def test_a_killed_worker_is_one_line_and_loses_no_checkpoint(made, workers, monkeypatch):
    trainer, threads = made(**TWO), torch.get_num_threads()
    inner = module.update

    def killing(*arguments, **named):
        if trainer.state.update == 3:
            workers[0].kill()
        return inner(*arguments, **named)

    monkeypatch.setattr(module, "update", killing)
    with pytest.raises(InputError) as caught:
        trainer.run()

    [kept] = checkpoints(trainer.checkpoint_directory)
    assert str(caught.value) == (
        "a process of this training was lost (worker 1 of 1 beside the first was ended by signal"
        f" 9); the last good checkpoint is {kept}; the same command goes on"
    )
    assert load_checkpoint(kept, trainer.model, trainer.optimiser).update == 2
    assert torch.get_num_threads() == threads
