"""A run's directory has one training at a time."""

import os
import socket
import sys
from types import SimpleNamespace

import pytest

from glassformer.support.errors import InputError
from glassformer.training.setup.run_directory import RunDirectory


def test_a_second_training_is_told_of_the_first(tmp_path):
    run = tmp_path / "run"
    holder = f"process {os.getpid()} on {socket.gethostname()}"

    with (
        RunDirectory(run).locked(),
        pytest.raises(
            InputError, match=f"another training works in {run}: {holder}: wait .* with kill, or"
        ),
        RunDirectory(run).locked(),
    ):
        pass

    with RunDirectory(run).locked():  # it is free again
        assert (run / "data" / "lock").read_text() == holder


def test_what_a_killed_packing_left_is_removed(tmp_path):
    left = tmp_path / "data" / ".train-x1.partial" / "new"
    left.mkdir(parents=True)
    (left / "source.ids").write_bytes(b"half")

    with RunDirectory(tmp_path).locked():
        assert [path.name for path in (tmp_path / "data").iterdir()] == ["lock"]


def test_without_locks_it_goes_on(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)

    with RunDirectory(tmp_path / "run").locked():
        assert (tmp_path / "run" / "data").is_dir()


def test_windows_locks_a_byte_after_the_text(tmp_path, monkeypatch):
    locked = []

    def locking(descriptor, _, count):
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        if place in locked:
            raise PermissionError(13, "Permission denied")
        locked.append(place)
        assert count == 1

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))

    with RunDirectory(tmp_path).locked():
        text = (tmp_path / "data" / "lock").read_text()
        assert text == f"process {os.getpid()} on {socket.gethostname()}"
        with pytest.raises(InputError, match=f"another training works in {tmp_path}: process"):
            RunDirectory(tmp_path).locked().__enter__()
    assert locked == [1_000]
