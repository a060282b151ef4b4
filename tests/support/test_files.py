"""Writing: whole or not at all, and never in the place of a device or a link."""

import errno
import os
import stat

import pytest

from glassformer.support.errors import InputError
from glassformer.support.files import (
    check_output,
    naming,
    new_directory,
    open_atomically,
    write_atomically,
)


def test_a_file_is_replaced_only_at_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    with open_atomically(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"

    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_fault_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half():
        with open_atomically(path) as file:
            file.write(b"new")
            raise KeyError

    with pytest.raises(KeyError):
        write_half()

    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)

    write_atomically(link, b"new")

    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_link_to_nothing_makes_its_target(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")

    write_atomically(link, b"new")

    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_pipe_stays_a_pipe_and_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # waits for nobody

    write_atomically(pipe, b"new")

    with os.fdopen(reader, "rb") as received:
        assert received.read() == b"new"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "no" / "file"

    with pytest.raises(OSError, match="No such file") as raised:
        write_atomically(path, b"")

    assert raised.value.filename == str(path)


def test_a_full_disk_names_the_file(tmp_path):
    path = tmp_path / "file"

    with pytest.raises(OSError, match="No space") as raised, open_atomically(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert raised.value.filename == str(path)
    assert not path.exists()


def test_an_output_without_a_directory_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"^--out .*no/a: there is no directory .*no: make it$"):
        check_output("--out", tmp_path / "no" / "a")
    with pytest.raises(InputError, match=r"^--out .* is a directory, expected a file"):
        check_output("--out", tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "no" / "a")
    with pytest.raises(InputError, match=r"link: there is no directory .*no: make it"):
        check_output("--out", tmp_path / "link")
    check_output("--out", tmp_path / "new")


def test_an_error_without_a_file_gets_its_name(tmp_path):
    with pytest.raises(OSError, match="No space") as raised, naming(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(tmp_path)

    new = tmp_path / "new"
    with pytest.raises(OSError, match="No space") as raised, new_directory(new):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(new)


def test_a_files_name_is_on_the_disk_too(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda n: flushed.append(stat.S_ISDIR(os.fstat(n).st_mode)))

    write_atomically(tmp_path / "file", b"new")

    assert flushed == [False, True]
