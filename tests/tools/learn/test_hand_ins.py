"""A teacher's table: who has solved which lesson, and with which mistakes."""

import csv
import json

import torch

from glassformer.tools.cli.main import main
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.hand_ins import line_of
from glassformer.tools.learn.verdict import Verdict
from tests.lessons import RIGHT, folder_with

SCALE = " / math.sqrt(query.size(-1))"


def test_each_learner_has_a_row(tmp_path, capsys):
    folder_with(tmp_path / "ada")
    folder_with(tmp_path / "ben", RIGHT.replace(SCALE, ""))
    (tmp_path / "notes").mkdir()

    assert main(["learn", "check", str(tmp_path), "--json"]) == 1
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["learner"], r["lesson"], r["outcome"]) for r in records] == [
        ("ada", "attention", "right"),
        ("ben", "attention", "mistake"),
    ]
    assert records[1]["mistakes"] == [["scale-missing"]]

    assert torch.get_default_dtype() == torch.float32  # the probes' float64 is gone


VERDICTS = [
    Verdict("attention", "mistake", mistakes=(("scale-missing",), ("a", "b"))),
    Verdict("padding", "empty"),
    Verdict("heads", "difference", ("Your joint is 1; right is 2.",)),
    Verdict("loss", "right"),
]


def test_a_learner_has_one_line():
    assert line_of("ben", VERDICTS) == (
        "ben: right 11; 1 scale-missing or a + b; 2 not written yet;"
        " 4 difference: Your joint is 1; right is 2."
    )
    assert line_of("eva", []) == "eva: nothing begun"


def test_who_has_not_begun_has_a_line_too(tmp_path, capsys):
    Folder(tmp_path / "eva").make()
    assert main(["learn", "check", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "eva: nothing begun\n"


def test_the_table_as_csv(tmp_path, capsys, monkeypatch):
    Folder(tmp_path / "ben").make()
    found = [("ben", VERDICTS), ("eva", [])]
    monkeypatch.setattr("glassformer.tools.learn.hand_ins.check_hand_ins", lambda _: found)
    assert main(["learn", "check", str(tmp_path), "--csv"]) == 1
    names, ben, eva = csv.reader(capsys.readouterr().out.splitlines())
    assert names[:3] == ["learner", "attention", "padding"]
    assert ben[:4] == ["ben", "scale-missing or a + b", "not written yet", ""]
    assert ben[11] == "right"
    assert eva == ["eva", *[""] * 15]


def test_a_folder_without_lessons_is_named(tmp_path, capsys):
    assert main(["learn", "check", str(tmp_path)]) == 1
    assert f"{tmp_path} has no lessons" in capsys.readouterr().err
