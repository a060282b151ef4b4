"""The examples run, on small files made here; the everyday sentences also with each failure."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glassformer.tools.phrasebook.book import phrasebook
from tests.processes import programs
from tests.tables import every

pytestmark = pytest.mark.usefixtures("without_shape_types")
EXAMPLES = Path(__file__).parents[1] / "examples"
TINY = "--updates 3 --validations 1 --beam 1 --d-model 16 --num-heads 2 --d-ff 16"
# Each script with its words, a line that it prints, a file that it leaves, and bytes of the file.
CALLS = [
    (
        "draw_attention.py",
        "bundle 'A dog runs.'",
        r"A dog runs\. -> .*",
        "attention.png",
        b"\x89PNG",
    ),
    ("own_attention.py", "train.tsv own 3", r"bundle: own", "own/config.json", b"five_keys"),
    ("own_loss.py", "train.tsv focal 3", r"bundle: focal", "focal/metrics.jsonl", b'"update": 3'),
    ("serve_and_ask.py", "bundle 'A dog runs.'", r".*; also .*", "bundle/config.json", b"{"),
    ("import_hugging_face.py", "marian own", r"wrote look\.html: .*", "look.html", b"<html"),
    (
        "mail_a_page.py",
        "bundle a@b.org",
        r"translator\.eml: .*",
        "translator.eml",
        b"translate.html",
    ),
    ("many_processes.sh", f"train.tsv --out two {TINY}", r"bundle: two", "two/config.json", b"{"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory, bundle_directory):
    """A folder with a bundle, the demo's phrases, and a copy of pairs in Moses' form."""
    directory = tmp_path_factory.mktemp("examples")
    shutil.copytree(bundle_directory, directory / "bundle")
    phrases = phrasebook(seed=3, size=400).train
    pairs = [(phrase.source, phrase.target) for phrase in phrases]
    few = "".join(f"{source}\t{target}\n" for source, target in pairs[:60])
    (directory / "train.tsv").write_text(few, "utf-8")
    for code, lines in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        (directory / f"copy.{code}").write_text("\n".join(lines) + "\n", "utf-8")
    return directory


@pytest.fixture(scope="module", autouse=True)
def quick_programs():
    with programs() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([folder, os.environ["PATH"]]))
        yield


@pytest.mark.parametrize("call", CALLS, ids=[call[0] for call in CALLS])
def test_it_runs(place, tmp_path, monkeypatch, capfd, call):
    name, words, line, left, content = call
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    if name.endswith(".sh"):
        subprocess.run([EXAMPLES / name, *shlex.split(words)], check=True)
    else:
        monkeypatch.setattr("sys.argv", [name, *shlex.split(words)])
        # As the main module, each process that forks from it would run it again.
        runpy.run_path(str(EXAMPLES / name), run_name="example")
    printed = capfd.readouterr()
    assert re.search(f"^{line}$", printed.out + printed.err, re.MULTILINE), printed
    assert content in Path(left).read_bytes()


def test_each_example_is_short():
    lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in scripts()}
    assert {call[0] for call in CALLS} | {"everyday-sentences.sh"} <= set(lines)
    assert sum(lines.values()) <= 300
    assert not {name: lines[name] for name, *_ in CALLS if lines[name] > 25}


def scripts():
    return [path for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")]


# The everyday sentences. OpusTools' opus_read is a stand-in, with the lines that 1.9.0 prints.
OPUS = {
    "no network": """printf 'a.zip ... 0% of 10 MB'
        echo 'Unable to retrieve the data from https://opus.nlpl.eu: <urlopen error [Errno -2]>'
        echo "FileNotFoundError: [Errno 2] No such file or directory: 'a.zip'" >&2; exit 1""",
    "no such pair": """echo '   0 KB Total size'
        echo "FileNotFoundError: [Errno 2] No such file or directory: 'a.zip'" >&2; exit 1""",
    "broken": "mkdir -p $OUT/download; echo 'zipfile.BadZipFile: not a zip file' >&2; exit 1",
    "right": "while [ $1 != -w ]; do shift; done; cp copy.en $2; cp copy.de $3",
}


def everyday(place, *words, out, path=()):
    """The script's exit status, output and errors."""
    return subprocess.run(
        [EXAMPLES / "everyday-sentences.sh", *words],
        cwd=place,
        env={**os.environ, "OUT": str(out), "MINUTES": "0.05", "PATH": path_with(*path)},
        capture_output=True,
        text=True,
        check=False,
    )


def path_with(*folders):
    return os.pathsep.join([*map(str, folders), os.environ["PATH"]])


def program(folder, name, text):
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o700)
    return folder


@pytest.mark.usefixtures("nightly")
def test_everyday_sentences_become_a_translator(place, tmp_path):
    program(tmp_path, "opus_read", OPUS["right"])

    ended = everyday(place, "en", "de", out=tmp_path / "out", path=[tmp_path])

    assert ended.returncode == 0, ended.stderr
    assert "400 pairs: 360 for training, 40 for the test" in ended.stdout
    assert "of test, 0 pairs, 0 sources and 0 targets stand in train too" in ended.stdout
    assert "BLEU" in ended.stdout
    test = (tmp_path / "out/test.tsv").read_text("utf-8").splitlines()
    assert sum(f"\n{pair}\t" in ended.stdout for pair in test) == 10  # with their translations
    for name in ("look.html", "translate.html"):
        assert "<html" in (tmp_path / "out" / name).read_text("utf-8")
    assert ended.stdout.endswith(f"open {tmp_path / 'out'}/translate.html\n")


@every(
    ("opus", "line"),
    [
        ("no network", "no download: Unable to retrieve the data from .*"),
        ("no such pair", "OPUS has no Tatoeba pairs of en and de: .*-s en.*"),
        ("broken", "the download was broken, and is deleted: zipfile.BadZipFile: .*"),
        ("", "opus_read is missing: pip install opustools"),
    ],
)
def test_a_failed_download_is_one_line(place, tmp_path, opus, line):
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    if opus:
        program(folder, "opus_read", OPUS[opus])
    out = folder / "out"

    ended = everyday(place, "en", "de", out=out, path=[folder])

    assert (ended.returncode, ended.stdout) == (1, "")
    assert re.fullmatch(f"everyday-sentences: {line}\n", ended.stderr)
    assert not (out / "download").exists()


@every(
    ("files", "line"),
    [
        ({}, "c.en: no such file, with or without .gz"),
        ({"c.en": b"A\nB\n"}, "c.de: no such file, with or without .gz"),
        ({"c.en.gz": b"\x1f\x8b\x08\x00"}, "c.en.gz: it cannot be read, or is no gzip file"),
        ({"c.en": "A\n".encode("utf-16")}, "c.en: no text in UTF-8"),
        ({"c.en": b"PK\x03\x04\xff"}, "c.en: no text in UTF-8"),
        ({"c.en": b"A\nB\tC\n"}, "c.en:2: a tab, but Moses' form has one sentence in a line"),
        (
            {"c.en": b"A\nB\n", "c.de": b"A\n"},
            "c: 2 lines of en and 1 of de, which are no pairs",
        ),
        ({"c.en": b"A\nA\n\n", "c.de": b"B\nB\nC\n"}, "c: 1 different pairs, expected at least 10"),
    ],
)
def test_files_of_another_form_are_one_line(tmp_path, files, line):
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    for name, content in files.items():
        (folder / name).write_bytes(content)

    ended = everyday(folder, "en", "de", "c", out=folder / "out")

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"everyday-sentences: {line}\n"


@every("words", [(), ("en",), ("en", "en"), ("en", "de", "c", "d")])
def test_a_wrong_call_is_one_line_and_2(tmp_path, words):
    ended = everyday(tmp_path, *words, out=tmp_path / "out")

    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1


SENTENCES = st.text("ab?ä ", min_size=1, max_size=3).map(str.strip).filter(bool)


@given(pairs=st.lists(st.tuples(SENTENCES, SENTENCES), min_size=12, max_size=90))
def test_no_sentence_of_the_test_stands_in_the_training(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("split")
    program(folder, "glassformer", "exit 1")  # the script ends after the split
    for name, lines in zip(("c.en", "c.de"), zip(*pairs, strict=True), strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assume(len(set(pairs)) >= 10)

    everyday(folder, "en", "de", "c", out=folder, path=[folder])

    train, test = (read_pairs(folder / f"{part}.tsv") for part in ("train", "test"))
    assert len(test) == len(set(pairs)) // 10
    assert set(train) | set(test) <= set(pairs)
    for side in (0, 1):
        held = {pair[side] for pair in test}
        assert not held & {pair[side] for pair in train}
    left_out = set(pairs) - set(train) - set(test)
    assert all(any(pair[0] == t[0] or pair[1] == t[1] for t in test) for pair in left_out)


def read_pairs(path):
    return [tuple(line.split("\t")) for line in path.read_text("utf-8").splitlines()]
