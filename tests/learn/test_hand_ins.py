"""A teacher's table: who has solved which lesson, and with which mistakes."""

import io
import json

import torch
from rich.console import Console

from glassformer.cli.main import main
from glassformer.learn.folder import Folder
from glassformer.learn.hand_ins import table_of
from glassformer.learn.lesson import lesson
from glassformer.learn.verdict import Verdict

HOLE = "    raise NotImplementedError\n"
LINES = """\
    scores = query @ key.transpose(-2, -1) {scale}
    weights = masked_softmax(scores, mask)
    return weights @ value, weights
"""


def hand_in(directory, scale):
    folder = Folder(directory)
    folder.make()
    file = folder.file(lesson("attention"))
    body = LINES.format(scale=scale)
    file.write_text(file.read_text(encoding="utf-8").replace(HOLE, body), encoding="utf-8")


def test_each_learner_has_a_row(tmp_path, capsys):
    hand_in(tmp_path / "ada", "/ math.sqrt(query.size(-1))")
    hand_in(tmp_path / "ben", "")
    (tmp_path / "notes").mkdir()

    assert main(["learn", "check", str(tmp_path), "--json"]) == 1
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["learner"], r["lesson"], r["outcome"]) for r in records] == [
        ("ada", "attention", "right"),
        ("ben", "attention", "mistake"),
    ]
    assert records[1]["mistakes"] == [["scale-missing"]]

    assert torch.get_default_dtype() == torch.float32  # the probes' float64 is gone


def test_the_table_has_a_row_for_each_learner():
    verdicts = [
        ("ada", Verdict("attention", "right")),
        ("ben", Verdict("attention", "mistake", mistakes=(("scale-missing",), ("a", "b")))),
        ("ben", Verdict("padding", "empty")),
    ]
    out = io.StringIO()
    Console(file=out, width=80).print(table_of(verdicts))
    ada, ben, more = (line for line in out.getvalue().splitlines() if line.startswith("│"))
    assert ada.split() == ["│", "ada", "│", "1", "│", "│"]
    assert "1: scale-missing or a + b" in ben
    assert "2: not written yet" in more


def test_without_json_the_table_is_printed(tmp_path, capsys, monkeypatch):
    Folder(tmp_path / "ada").make()
    verdicts = [("ada", Verdict("attention", "mistake", mistakes=(("scale-missing",),)))]
    monkeypatch.setattr("glassformer.learn.hand_ins.check_hand_ins", lambda _: verdicts)
    assert main(["learn", "check", str(tmp_path)]) == 1
    assert "1: scale-missing" in capsys.readouterr().out


def test_a_folder_without_lessons_is_named(tmp_path, capsys):
    assert main(["learn", "check", str(tmp_path)]) == 1
    assert f"{tmp_path}: no lessons here" in capsys.readouterr().err
