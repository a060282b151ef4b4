"""Data of any size go through in parts: the parts change nothing, and the memory stays small."""

import gzip
import itertools
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from glassformer.data import lines
from glassformer.data.corpus import read_pairs
from glassformer.support.errors import InputError
from glassformer.tools.doctor import examine as doctor
from glassformer.tools.doctor.examine import CorpusFiles, examine

AWKWARD = [
    "\ufeffein Haus",
    "Grüße, «café»\r",
    "",
    "schÃ¶n",
    "x" * 400,
    "a\x00b",
    "\ufffd",
    "ein Haus",
    "漢字",
]


def files(folder: Path, pairs: int) -> CorpusFiles:
    """Pairs that are all different, of eight words a side."""
    for side in ("de", "en"):
        with (folder / f"{pairs}.{side}").open("w", encoding="utf-8") as file:
            file.writelines(
                f"{side} {row} größer als {row + 1} oder gleich {row}\n" for row in range(pairs)
            )
    return CorpusFiles(folder / f"{pairs}.de", folder / f"{pairs}.en")


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(doctor, "_AT_ONCE", 4_000)
    monkeypatch.setattr(lines, "_BLOCK_BYTES", 4_000)


def growth(folder: Path, work: Callable[[CorpusFiles], object]) -> float:
    """Bytes that are held at most, in Python's objects and numpy's arrays, for each pair more."""
    few, many = 500, 3_000
    peaks = []
    for pairs in (few, few, many):  # the first time, modules and tables are made
        given = files(folder, pairs)
        tracemalloc.start()
        work(given)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return (peaks[2] - peaks[1]) / (many - few)


@pytest.mark.usefixtures("small_parts")
def test_the_doctor_keeps_a_few_bytes_of_a_pair(tmp_path):
    # A hash of 8 bytes, two lengths of 2, and what finds repeats; the texts alone would be 250,
    # their hashes as Python's integers 100.
    assert 12 < growth(tmp_path, examine) < 30


@pytest.mark.usefixtures("small_parts")
def test_reading_keeps_nothing(tmp_path):
    assert (
        growth(tmp_path, lambda given: sum(1 for _ in read_pairs(given.source, given.target))) < 1
    )


def test_blank_pairs_are_examined_in_parts_too():
    rows = ((line, "", "") for line in itertools.count(1))

    assert len(next(doctor._portions(rows))) < 20_000


def test_a_gzip_file_of_line_feeds_alone_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"\n" * 300_000 + b"a\n" * 30_000))
    assert sum(1 for _ in lines.read_lines(path)) == 330_000

    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1_000)
    monkeypatch.setattr(lines, "MAX_EXPANSION", 20)
    with pytest.raises(InputError, match=r"line .*: the text has more than 20 times the size"):
        list(lines.read_lines(path))


def test_blank_lines_without_end_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "blank.txt"
    path.write_bytes(b"a\n" + b" \n" * 3_000)
    assert sum(1 for _ in lines.read_lines(path)) == 3_001

    monkeypatch.setattr(lines, "MAX_BLANK_LINES", 500)
    monkeypatch.setattr(lines, "_BLOCK_BYTES", 100)
    with pytest.raises(InputError, match=r"line \d+: 5\d\d blank lines in a row, which text"):
        list(lines.read_lines(path))


@pytest.mark.parametrize("at_once", [1, 7, 40])
def test_the_size_of_the_parts_changes_nothing(tmp_path, monkeypatch, at_once):
    train = CorpusFiles(tmp_path / "a.de", tmp_path / "a.en")
    valid = CorpusFiles(tmp_path / "b.tsv")
    train.source.write_bytes("\n".join(AWKWARD * 3).encode() + b"\nGr\xfc\xdfe\n")
    train.target.write_text("\n".join(AWKWARD[::-1] * 3) + "\n\nzu viel\n", "utf-8", newline="")
    valid.source.write_text("\t\nbad\nschÃ¶n\tx\nein Haus\tGrüße\nein Haus\tGrüße\n", "utf-8")
    whole = examine(train, valid=valid)

    monkeypatch.setattr(doctor, "_AT_ONCE", at_once)
    monkeypatch.setattr(lines, "_BLOCK_BYTES", at_once)

    assert examine(train, valid=valid) == whole
    assert len(whole.findings) > 8
