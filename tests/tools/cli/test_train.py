"""``train`` through the real command line: flags and files agree, and each bad input is a line."""

import json
import shutil
import signal
import time
from pathlib import Path

import pytest

from glassformer.tools.cli.main import main
from glassformer.tools.cli.train import run
from glassformer.training.setup.options import TrainConfig
from glassformer.training.train import train

SHORT = (
    *("--updates=2", "--validations=1", "--vocab-size=300", "--average=none", "--d-model=16"),
    *("--num-heads=2", "--d-ff=16", "--num-encoder-layers=1", "--num-decoder-layers=1"),
    "--seed=3",
)


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> tuple[str, str]:
    """Sixty aligned lines: the target is the source, backwards and in capitals."""
    directory = tmp_path_factory.mktemp("texts")
    words = ("a", "dog", "runs", "on", "grass", "and", "two", "men", "sit", "in", "snow")
    lines = [[words[(3 * i + j * j) % len(words)] for j in range(2 + i % 4)] for i in range(60)]
    (directory / "t.en").write_text("".join(" ".join(line) + "\n" for line in lines), "utf-8")
    backwards = [" ".join(line[::-1]).upper() for line in lines]
    (directory / "t.de").write_text("".join(f"{line}\n" for line in backwards), "utf-8")
    return str(directory / "t.en"), str(directory / "t.de")


@pytest.fixture(scope="module")
def trained(texts, tmp_path_factory) -> Path:
    """A run of two updates, by flags."""
    directory = tmp_path_factory.mktemp("runs") / "flags"
    assert main(["train", *texts, "--run", str(directory), *SHORT]) == 0
    return directory


def weights(directory: Path) -> bytes:
    return (directory / "model.safetensors").read_bytes()


def updates(directory: Path) -> list[int]:
    lines = (directory / "metrics.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["update"] for line in lines]


def test_the_command_and_the_function_make_one_bundle(texts, tmp_path):
    options = ["--valid", *texts, *SHORT]
    assert main(["train", *texts, "--run", str(tmp_path / "command"), *options]) == 0

    short = dict(word[2:].replace("-", "_").split("=") for word in SHORT)
    train(TrainConfig(pairs=texts, run=tmp_path / "function", valid=texts, **short))

    configs = []
    for name in ("command", "function"):
        configs.append(json.loads((tmp_path / name / "config.json").read_text("utf-8")))
        del configs[-1]["about"]["trained for"], configs[-1]["sha256"]["config.json"]
    assert configs[0] == configs[1]
    assert configs[0]["alignment"]["heads"]
    for name in ("model.safetensors", "tokenizer.model"):
        command, function = (tmp_path / place / name for place in ("command", "function"))
        assert command.read_bytes() == function.read_bytes()


def test_a_file_of_options_gives_the_same_weights_as_flags(trained, texts, tmp_path):
    lines = [f"pairs: [{texts[0]}, {texts[1]}]", "run: nowhere", "seed: 9"]
    lines += [word.removeprefix("--").replace("=", ": ") for word in SHORT if "seed" not in word]
    (tmp_path / "options.yaml").write_text("\n".join(lines), "utf-8")
    words = ["train", "--config", str(tmp_path / "options.yaml"), "--seed", "3"]

    assert main([*words, "--run", str(tmp_path / "run")]) == 0

    assert weights(tmp_path / "run") == weights(trained)
    assert not Path("nowhere").exists()


def test_a_runs_own_file_continues_it(trained, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(trained, copy)
    words = ["train", "--config", str(copy / "config.yaml"), "--run", str(copy)]
    before = updates(copy)

    assert main(words) == 0

    assert "continuing from update 2" in capsys.readouterr().err
    assert updates(copy) == before
    assert weights(copy) == weights(trained)


def test_other_options_do_not_touch_the_run(trained, texts, refused):
    (trained / "data" / "lock").unlink()
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*") if path.is_file()}

    status, line = refused("train", *texts, "--run", trained, *SHORT[:-1], "--seed=4")

    assert status == 1
    assert "seed 3, now 4" in line
    (trained / "data" / "lock").unlink()
    files = [path for path in trained.rglob("*") if path.is_file()]
    assert {path: path.stat().st_mtime_ns for path in files} == before


FILES = {
    "empty.en": b"",
    "blank.en": b"\n\n",
    "two.de": b"x\ny\n",
    "bad.en": b"a b\nc \xff d\n",
    "bad.jsonl": b'{"source": "a", "target": "b"}\n{"source":\n',
    "keys.jsonl": b'{"src": "a", "tgt": "b"}\n',
    "three.tsv": b"a\tb\nc\td\te\n",
    "no.model": b"no model",
}


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("T.EN two.de", 1, "T.EN has 60 lines and two.de has 2"),
        ("T.EN none.de", 1, "none.de: cannot be read: No such file or directory"),
        (". two.de", 1, ". is a directory, expected a regular file: name a file"),
        ("empty.en empty.en", 1, "empty.en: the file is empty"),
        ("blank.en two.de", 1, "blank.en and two.de: no pair is left to train on"),
        ("bad.en two.de", 1, "bad.en, line 2: not UTF-8: 0xFF at byte offset 2"),
        ("bad.jsonl", 1, "bad.jsonl, line 2: not JSON"),
        ("keys.jsonl", 1, "keys.jsonl, line 1: no key 'source', only 'src', 'tgt'"),
        ("three.tsv", 1, "three.tsv, line 2: 3 columns"),
        ("T.EN", 2, "T.EN: the name of this one file shows no format"),
        ("T.EN T.DE --valid T.EN two.de", 1, "T.EN has 60 lines and two.de has 2"),
        ("T.EN T.DE --tokenizer no.model", 1, "no.model: not a SentencePiece model"),
        ("T.EN T.DE --tokenizer none.model", 1, "none.model: "),
        ("T.EN T.DE --tokenizer a b", 2, "two tokenizers are not joint"),
        ("T.EN T.DE --vocab-size 20", 2, "vocab_size 20: expected 300"),
        ("T.EN T.DE --d-model 63", 2, "d_model must be even"),
        ("T.EN T.DE --d-model 66 --num-heads 4", 2, "d_model 66 is not divisible by num_heads 4"),
        ("T.EN T.DE --device gpu", 2, "device 'gpu': expected"),
        ("T.EN T.DE --device cuda:99", 2, "device 'cuda:99': "),
        ("T.EN T.DE --updates 3 --epochs 2", 2, "give epochs or updates, not both"),
    ],
)
def test_what_training_cannot_use_is_one_line_and_mended_goes_on(
    texts, tmp_path, monkeypatch, capsys, words, status, message
):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    for name, path in zip(("T.EN", "T.DE"), texts, strict=True):
        shutil.copy(path, name)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert main(["train", *words.split(), "--run", "run"]) == status

    *_, error = capsys.readouterr().err.splitlines()  # after the lines about the data
    assert error.startswith(f"glassformer: error: {message}")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    if "device" in words:  # what comes last of all; after any of them the same run can begin
        assert main(["train", "T.EN", "T.DE", "--run", "run", *SHORT]) == 0


def test_a_run_that_is_stopped_says_so_and_with_what(monkeypatch, capsys):
    from glassformer.training.loop import Stopped

    def train(_config, _reporter, *, began, **_parts):
        assert began <= time.monotonic()
        raise Stopped(7, signal.SIGTERM)

    monkeypatch.setattr("glassformer.training.train.train", train)

    assert run(TrainConfig(pairs=("a",), run="r")) == 128 + signal.SIGTERM
    assert run(TrainConfig(pairs=("a",), run="r")) == 128 + signal.SIGTERM
    said = capsys.readouterr()
    assert said.err.startswith("glassformer: stopped and saved at update 7; the same command")
    assert said.out == ""
