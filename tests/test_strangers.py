"""The door for strangers' files: what comes in is values, or one line of error."""

import os
import socket

import pytest

from glassformer.errors import InputError
from glassformer.strangers import check_regular, read_bytes


def test_only_regular_files_are_read(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as place:
        place.bind(str(tmp_path / "socket"))

    assert read_bytes(tmp_path / "link", most_bytes=5) == b"12345"
    with pytest.raises(InputError, match="link: 5 bytes, expected at most 4: it is damaged, or"):
        read_bytes(tmp_path / "link", most_bytes=4)
    for name, kind in {"pipe": "a pipe", "socket": "a socket", ".": "a directory"}.items():
        with pytest.raises(InputError, match=f"{kind}, expected a regular file: "):
            check_regular(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        check_regular(tmp_path / "nothing")
