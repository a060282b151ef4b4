"""Data of any size go through in parts: the parts change nothing, and the memory stays small."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glassformer.data import doctor, lines
from glassformer.data.doctor import CorpusFiles, examine

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


GROWTH = """
import sys
from pathlib import Path
from glassformer.data.corpus import read_pairs
from glassformer.data.doctor import CorpusFiles, examine

def work(stem):
    files = CorpusFiles(Path(stem + ".de"), Path(stem + ".en"))
    return {call}

def highest():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

work(sys.argv[1])
before = highest()
work(sys.argv[2])
print(highest() - before)
"""


def growth(folder: Path, call: str) -> float:
    """Bytes that a process of its own takes more for each pair more."""
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not say how much memory a process had at most")
    few, many = 50_000, 150_000
    stems = [str(files(folder, pairs).source.with_suffix("")) for pairs in (few, many)]
    source = str(Path(doctor.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", GROWTH.replace("{call}", call), *stems],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    return int(done.stdout) / (many - few)


def test_the_doctor_keeps_a_few_bytes_of_a_pair(tmp_path):
    # A hash of 8 bytes, two lengths of 2, what finds repeats, and what the allocator rounds up; the
    # texts alone would be 250, their hashes as Python's integers 100.
    assert growth(tmp_path, "examine(files)") < 60


def test_reading_keeps_nothing(tmp_path):
    assert growth(tmp_path, "sum(1 for _ in read_pairs(files.source, files.target))") < 30


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
