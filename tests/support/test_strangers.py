"""The door for strangers' files: what comes in is values, or one line of error."""

import io
import os
import socket
import zipfile

import pytest
import torch
from pydantic import BaseModel
from safetensors.torch import save_file

from glassformer.support import strangers
from glassformer.support.errors import InputError
from glassformer.support.strangers import (
    check_regular,
    member_names,
    parsed_json,
    read_bytes,
    read_json,
    read_members,
    read_tensors,
    read_text,
    read_yaml,
    shown,
    unpacked,
)
from tests.tables import every


class Sizes(BaseModel):
    width: int
    names: list[str] = []


def test_a_file_that_becomes_a_pipe_after_the_check_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"12345")

    def exchanged(place, **_):
        place.unlink()
        os.mkfifo(place)

    monkeypatch.setattr(strangers, "check_regular", exchanged)

    with pytest.raises(InputError, match="file is a pipe, expected a regular file"):
        read_bytes(path, most_bytes=9)


def test_only_regular_files_are_read(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as place:
        monkeypatch.chdir(tmp_path)  # the path of a socket has at most 107 characters
        place.bind("socket")

    assert read_bytes(tmp_path / "link", most_bytes=5) == b"12345"
    with pytest.raises(InputError, match="link: the file has 5 bytes, expected at most 4: it is"):
        read_bytes(tmp_path / "link", most_bytes=4)
    for name, kind in {"pipe": "a pipe", "socket": "a socket", ".": "a directory"}.items():
        with pytest.raises(InputError, match=f"{kind}, expected a regular file: "):
            check_regular(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        check_regular(tmp_path / "nothing")
    with pytest.raises(InputError, match="nothing: cannot be read: No such file or directory"):
        read_bytes(tmp_path / "nothing", most_bytes=5)


def test_text_is_utf_8(tmp_path):
    (tmp_path / "text").write_bytes("née".encode("latin-1"))
    with pytest.raises(InputError, match=r"text: not UTF-8 text \(byte 1\): copy it anew"):
        read_text(tmp_path / "text", most_bytes=9)


@every(
    ("content", "message"),
    [
        ('{"width": 3', "not JSON, or cut short (Invalid JSON: EOF while parsing an object"),
        ("[" * 100_000, "not JSON, or cut short (Invalid JSON: recursion limit exceeded"),
        ('{"width": "\\ud800"}', "not JSON, or cut short (Invalid JSON: "),
        ("[1]", "expected an object"),
        ("{}", "width: it is missing"),
        ('{"width": "3"}', "width '3': expected a whole number"),
        ('{"width": 1' + "0" * 5000 + "}", "not JSON, or cut short (Invalid JSON: number out of"),
        ('{"width": 3, "names": ["a", 7]}', "names.1 7: expected text"),
        ('{"width": "' + "x" * 99 + '"}', f"width '{'x' * 36}"),
    ],
)
def test_json_is_a_record_or_one_line(tmp_path, content, message):
    path = tmp_path / "sizes.json"
    path.write_text(content)

    with pytest.raises(InputError) as caught:
        read_json(path, Sizes)

    line = str(caught.value)
    assert line.startswith(f"{path}: {message}")
    assert "\n" not in line
    assert len(line) < len(str(path)) + 200


@pytest.mark.parametrize("text", [b"[[], {}, []]", b"[1, 2, 3, 4, 5, 6]"])
def test_many_values_are_refused_before_they_fill_the_memory(monkeypatch, text):
    monkeypatch.setattr(strangers, "_MOST_VALUES", 5)

    assert parsed_json(b"[[], {}]", list[object], "it") == [[], {}]
    with pytest.raises(InputError, match="it: 6 values: expected at most 5"):
        parsed_json(text, list[object], "it")


@every(
    ("content", "message"),
    [
        ("a: &a [x]\nb: *a", "not YAML (the file has an alias: write the value out)"),
        ("a: &a {k: 1}\nb: {<<: *a}", "not YAML (the file has an alias"),
        ("a: !!timestamp x", "not YAML ("),
        ("a: !!bool x", "not YAML ("),
        ("a: 2030-13-45", "not YAML ("),
        ("a: '\\U00110000'\nb: \"\\UFFFFFFFF\"", "not YAML ("),
        ("[" * 3000, "not YAML ("),
        ("- a", "expected a mapping of names to values, one a line"),
        ("#" * 70_000, "the file has 70,000 bytes, expected at most 65,536"),
    ],
)
def test_yaml_is_a_mapping_or_one_line(tmp_path, content, message):
    path = tmp_path / "options.yaml"
    path.write_text(content)

    with pytest.raises(InputError) as caught:
        read_yaml(path)

    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_tensors_have_the_expected_shapes(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(2, 3).half(), "b": torch.zeros(4)}, path)

    [(name, tensor)] = read_tensors(path, {"a": (2, 3), "b": None})
    assert (name, tensor.dtype) == ("a", torch.float32)
    assert torch.equal(tensor, torch.ones(2, 3))
    for shapes, message in (
        ({"a": (2, 3)}, r"the weight 'b' is unknown \(1 unknown\)"),
        ({"a": (3, 2), "b": (4,)}, r"a has the shape \(2, 3\), expected \(3, 2\)"),
    ):
        with pytest.raises(InputError, match=message):
            next(read_tensors(path, shapes))
    save_file({"a": torch.tensor([1.0, torch.nan])}, path)
    with pytest.raises(InputError, match="a holds NaN or infinity"):
        list(read_tensors(path, {"a": (2,)}))
    save_file({"a": torch.ones(2).long()}, path)
    with pytest.raises(InputError, match=r"a is of torch\.int64, expected floating-point numbers"):
        list(read_tensors(path))
    path.write_bytes(b"\xff" * 99)
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        list(read_tensors(path))


def zipped(*members):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return written.getvalue()


def members_of(content, most_bytes=1 << 30):
    found = read_members(io.BytesIO(content), "the file", bool, most_bytes=most_bytes)
    return {info.filename: b"".join(pieces) for info, pieces in found}


@pytest.mark.parametrize("size", [3, 40])  # in one piece, and in several
def test_tensors_come_from_one_file(tmp_path, monkeypatch, size):
    monkeypatch.setattr(strangers, "_NUMBERS", 50)
    path, other = tmp_path / "model.safetensors", tmp_path / "other.safetensors"
    tensors = {name: torch.randn(size, 4) for name in "abc"}
    save_file(tensors, path)
    save_file({name: tensor + 1 for name, tensor in tensors.items()}, other)
    read = dict(read_tensors(path, dict.fromkeys("abc", (size, 4))))
    assert all(torch.equal(read[name], tensors[name]) for name in "abc")

    reading = read_tensors(path)
    next(reading)
    other.replace(path)
    with pytest.raises(InputError, match="has changed while it was read: read it again"):
        list(reading)


def test_members_of_a_zip_file(tmp_path, monkeypatch):
    whole = zipped(("a/b", b"text" * 99), ("a/.", b"x"))
    assert members_of(whole) == {"a/b": b"text" * 99, "a/.": b"x"}
    damaged = bytearray(whole)
    damaged[36] ^= 0xFF
    for content, message in (
        (b"text", "the file: no zip file, or cut short"),
        (whole[:-30], "the file: no zip file, or cut short"),
        (bytes(damaged), "the file: a/b is damaged"),
        (zipped(("../a", b"x")), "the file: the member '../a' leads out of its directory"),
    ):
        with pytest.raises(InputError, match=message):
            members_of(content)
    with pytest.raises(InputError, match="1 MiB unpacked: expected at most 0 MiB"):
        members_of(zipped(("a", bytes(1 << 20))), most_bytes=9)
    monkeypatch.setattr(strangers, "_SMALL", 1 << 10)
    with pytest.raises(InputError, match="'a' grows to more than 100 times its packed size"):
        members_of(zipped(("a", bytes(1 << 20))))
    (tmp_path / "text").write_text("text")
    assert member_names(tmp_path / "text") == []


def test_an_error_in_a_member_names_the_zip_file(tmp_path):
    path = tmp_path / "package"
    path.write_bytes(zipped(("a/sizes.json", b"{}"), ("a/other", b"")))

    def read():
        with unpacked(path, lambda name: name.endswith(".json")) as place:
            assert [each.name for each in (place / "a").iterdir()] == ["sizes.json"]
            read_json(place / "a" / "sizes.json", Sizes)

    with pytest.raises(InputError, match=rf"^{path}: a/sizes\.json: width: it is missing$"):
        read()


def test_a_value_is_shown_short():
    assert shown("a\nb") == r"'a\nb'"
    assert shown(10**5000) == "a long number"
    assert len(shown(["x" * 999] * 999)) == len(shown("x" * 10**6)) == 41
