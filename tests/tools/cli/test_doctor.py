import json
import re
from pathlib import Path

import pytest

from glassformer.support.errors import UsageError
from glassformer.tools.cli.doctor import DoctorOptions, run
from glassformer.tools.cli.options import parse_options


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


def test_mended_files_are_written_and_each_change_is_counted(files, tmp_path, capsys):
    files[0].write_text("Hallo  Welt\n\nNacht\nNacht\n", encoding="utf-8")
    files[1].write_text("Hello\nday\nnight\nnight\n", encoding="utf-8")

    assert call(*files, "--out", tmp_path / "clean") == 0

    assert capsys.readouterr().out.endswith(
        f"\n\n{tmp_path / 'clean'}: 2 pairs in train\n"
        "  1 pair dropped: repeats\n"
        "  1 pair dropped: blank\n"
        "  1 pair changed: white space made one space\n"
    )
    assert (tmp_path / "clean" / "train.de").read_text(encoding="utf-8") == "Hallo Welt\nNacht\n"


def test_nothing_is_written_beside_errors(files, tmp_path, capsys):
    files[0].write_bytes(b"Hallo\nW\xfflt\n\nNacht\n")

    assert call(*files, "--out", tmp_path / "clean", "--json") == 1

    report = json.loads(capsys.readouterr().out)
    nothing = f"{tmp_path / 'clean'}: nothing is written: mend the errors above first"
    assert report["written"] == [nothing]
    assert not (tmp_path / "clean").exists()


def test_minutes_show_the_plan_of_a_training_in_that_time(files, capsys, monkeypatch):
    monkeypatch.setattr("glassformer.training.setup.machine.product_speed", lambda _: 4e11)
    for file in files:
        file.write_text("".join(f"Line {n} of {file.name}.\n" for n in range(3000)), "utf-8")

    assert call(*files, "--minutes", "0.5") == 0

    plan = capsys.readouterr().out.split("training would keep 3,000 of 3,000 training pairs\n")[1]
    assert "preset tiny" in plan
    assert "batch tokens 2,048" in plan
    assert re.search(r"updates about [\d,]+ to [\d,]+: 400 billion operations a second now", plan)
    assert "epochs" not in plan


def test_numbers_and_nouns_agree(tmp_path, capsys):
    path = tmp_path / "a.tsv"
    path.write_text("Hallo\tHello\n", encoding="utf-8")
    call(path, "--valid", path)
    out = capsys.readouterr().out
    assert "train: 1 pair (tsv)" in out
    assert f"{path}: 1 line\n" in out
    assert "of valid, 1 pair, 1 source and 1 target stand in train too" in out


def test_a_lone_cr_and_csv_quotes_have_their_remedy_at_the_error(tmp_path, capsys):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"Hallo\tHello\rWelt\tworld\r")
    assert call(path) == 1
    out = capsys.readouterr().out
    assert "a lone CR ends lines: convert the file, e.g. with tr" in out
    assert "CR LF" not in out
    path.write_text('"Hallo\tdu"\t"Hello"\n"Welt"\t"world"\n', encoding="utf-8")
    assert call(path) == 1
    first = capsys.readouterr().out.split("error    ")[1]
    assert first.startswith("train: lines hold csv quotes and no pair: give the format tsv")
