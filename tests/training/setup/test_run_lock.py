"""A run's directory has one training at a time."""

import os
import socket

import pytest

from glassformer.errors import InputError
from glassformer.training.setup.run_lock import locked


def test_a_second_training_is_told_of_the_first(tmp_path):
    run = tmp_path / "run"
    holder = f"process {os.getpid()} on {socket.gethostname()}"

    with (
        locked(run),
        pytest.raises(InputError, match=f"another training works in {run}: {holder}: wait until"),
        locked(run),
    ):
        pass

    with locked(run):  # it is free again
        assert (run / "data" / "lock").read_text() == holder


def test_without_locks_it_goes_on(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)

    with locked(tmp_path / "run"):
        assert (tmp_path / "run" / "data").is_dir()
