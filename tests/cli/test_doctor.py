import json
from pathlib import Path

import pytest

from glassformer.cli.doctor import DoctorOptions, run
from glassformer.cli.options import parse_options
from glassformer.errors import UsageError


def call(*arguments: object) -> int:
    return run(parse_options(DoctorOptions, [str(argument) for argument in arguments]))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "train.de", tmp_path / "train.en"
    source.write_text("Hallo\nWelt\n\nNacht\n", encoding="utf-8")
    target.write_text("Hello\nworld\nday\nnight\n", encoding="utf-8")
    return source, target


def test_the_report_says_what_training_would_do(files, capsys):
    assert call(*files, "--valid", *files) == 0
    out = capsys.readouterr().out
    assert "train: 4 pairs (lines)" in out
    assert "source scripts     Latin 100.0%" in out
    assert "of valid, 3 pairs, 3 sources and 3 targets stand in train too" in out
    assert "warning  train: a side is empty\n         1 line (3): '', 'day'" in out
    assert (
        "training would keep 3 of 4 training pairs and drop 1 empty\n  preset tiny: 3 pairs" in out
    )


def test_what_is_dropped_has_no_part_in_what_is_chosen(files, capsys):
    call(*files)
    chosen = capsys.readouterr().out.split("\n  preset")[1]
    for file in files:
        file.write_bytes(file.read_bytes() + b"far too long " * 1000 + b"\n")

    call(*files)

    assert capsys.readouterr().out.split("\n  preset")[1] == chosen


def test_faults_that_stop_training_give_status_1(files, capsys):
    files[0].write_bytes(b"Hallo\nW\xe4lt\nTag\n")
    assert call(*files) == 1
    out = capsys.readouterr().out
    assert "train.de 3 lines, train.en 4" in out
    assert "error    " + str(files[0]) + ": not UTF-8" in out
    assert "mend the errors above before you train; then training would" in out


def test_json_alone_is_printed(files, capsys):
    assert call(*files, "--test", *files, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["kept"], report["dropped"]["empty"]) == (True, 3, 1)
    assert list(report["parts"]) == ["train", "test"]


def test_one_file_with_keys_and_limits(tmp_path, capsys):
    path = tmp_path / "train.jsonl"
    record = {"translation": {"de": "Guten Morgen", "en": "Good morning"}}
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert call(path, "--keys", "de", "en") == 0
    assert "no fault was found" in capsys.readouterr().out
    assert call(path, "--keys", "de", "en", "--max-chars", 5) == 1
    assert "keep 0 of 1 training pairs and drop 1 long" in capsys.readouterr().out


def test_control_characters_do_not_reach_the_terminal(files, capsys):
    files[0].write_text("Hallo\n\x1b[31mWelt\n\u202eTag\nNacht\n", encoding="utf-8")
    call(*files)
    out = capsys.readouterr().out
    assert "\\x1b[31mWelt" in out
    assert "\x1b" not in out


def test_wrong_calls_are_named(files):
    with pytest.raises(UsageError, match=r"SOURCE \[TARGET\] .*: expected at most 2 values"):
        call(*files, files[0])
    with pytest.raises(UsageError, match=r"--valid .*: expected at most 2 values, not 3"):
        call(*files, "--valid", *files, files[0])
    with pytest.raises(UsageError, match="did you mean 'tsv'"):
        call(files[0], "--format", "tvs")
    with pytest.raises(UsageError, match=r"^--max-ratio '0\.5': expected at least 1$"):
        call(*files, "--max-ratio", 0.5)
