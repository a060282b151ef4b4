"""Hashes of files: a difference is named, and a manifest names files of its own directory only."""

import hashlib
import json
import os

import pytest

from glassformer.support.errors import ChecksumError, InputError
from glassformer.support.hashes import (
    MANIFEST,
    check_hashes,
    read_manifest,
    sha256,
    sha256_of_all,
    write_manifest,
)


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "b").write_bytes(b"")
    write_manifest(tmp_path)
    return tmp_path


def test_a_manifest_comes_back_and_fits(directory):
    hashes = read_manifest(directory)

    assert hashes.keys() == {"a", "b"}
    assert hashes["a"] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    check_hashes(directory, hashes, hashes, remedy="nothing")


def test_what_differs_is_named_with_the_remedy(directory):
    hashes = read_manifest(directory)
    (directory / "b").write_bytes(b"x")

    with pytest.raises(ChecksumError, match=r"b: checksum mismatch: .*: copy it$"):
        check_hashes(directory, hashes, hashes, remedy="copy it")
    with pytest.raises(InputError, match=r"a: checksum mismatch"):
        check_hashes(directory, ["a"], {}, remedy="copy it")
    (directory / "a").unlink()
    with pytest.raises(InputError, match="a: cannot be read: No such file"):
        check_hashes(directory, hashes, hashes, remedy="copy it")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "sha256.json: not JSON, or cut short"),
        ('{"a": 7}', "sha256.json: a 7: expected text"),
        (json.dumps({"../secret": "0"}), "sha256.json names a file of another directory"),
    ],
)
def test_a_faulty_manifest_is_named(directory, content, message):
    (directory / MANIFEST).write_text(content)

    with pytest.raises(InputError, match=message):
        read_manifest(directory)


def test_no_manifest_is_damage(tmp_path):
    with pytest.raises(InputError, match=r"sha256.json: cannot be read: No such file"):
        read_manifest(tmp_path)


def test_several_files_have_the_hash_of_their_hashes(directory):
    digests = [hashlib.sha256(content).digest() for content in (b"abc", b"")]

    both = sha256_of_all([directory / "a", directory / "b"])
    assert both == hashlib.sha256(b"".join(digests)).hexdigest()
    assert both != sha256_of_all([directory / "b", directory / "a"])


def test_a_pipe_has_no_hash(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(InputError, match="pipe is a pipe, expected a regular file"):
        sha256(tmp_path / "pipe")
