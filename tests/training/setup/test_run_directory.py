"""A run's directory has one training at a time."""

import os
import socket

import pytest

from glassformer.errors import InputError
from glassformer.training.setup.run_directory import RunDirectory


def test_a_second_training_is_told_of_the_first(tmp_path):
    run = tmp_path / "run"
    holder = f"process {os.getpid()} on {socket.gethostname()}"

    with (
        RunDirectory(run).locked(),
        pytest.raises(InputError, match=f"another training works in {run}: {holder}: wait until"),
        RunDirectory(run).locked(),
    ):
        pass

    with RunDirectory(run).locked():  # it is free again
        assert (run / "data" / "lock").read_text() == holder


def test_without_locks_it_goes_on(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)

    with RunDirectory(tmp_path / "run").locked():
        assert (tmp_path / "run" / "data").is_dir()
