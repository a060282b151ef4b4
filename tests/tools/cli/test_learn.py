"""``glassformer learn``: every action but the watch and the training."""

import json
import shlex
import xml.etree.ElementTree
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from glassformer.tools.cli.main import main
from glassformer.tools.learn import examine, own_check
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import EVERY, lesson
from glassformer.tools.learn.verdict import Verdict
from glassformer.tools.learn.worker import answer_on
from tests.lessons import ATTENTION, HOLE, folder_with

pytestmark = pytest.mark.usefixtures("without_shape_types")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The lessons' files, the first one filled in rightly; they run in this process.

    ``learn/test_hand_ins.py`` and ``learn/test_watch.py`` check files in others, as users do.
    """
    here = SimpleNamespace(answer=lambda chosen, file: answer_on(file, chosen.name))
    monkeypatch.setattr(examine, "Worker", lambda: nullcontext(here))
    return folder_with(tmp_path / "lessons")


def test_check_says_right_in_words_as_json_and_by_its_status(folder, capsys):
    assert main(["learn", "check", str(folder.path)]) == 0
    printed = capsys.readouterr().out
    assert "1. Scaled dot-product attention: right" in printed
    assert f"To try: {ATTENTION.questions[0].question}" in printed
    assert f"Answers: glassformer learn solution {folder.path} attention\n" in printed
    assert printed.endswith(f"Next: lesson 2, Masks: no padding: {folder.path}/02_padding.py\n")

    assert main(["learn", "check", str(folder.path), "2", "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["lesson"], verdict["outcome"]) == ("padding", "empty")


def test_own_parts_run_in_the_lesson_that_is_checked(folder, capsys, monkeypatch):
    verdict = Verdict("heads", "right", ("It runs with your parts of these lessons: attention.",))
    answers = {"heads": (lesson("heads"), verdict)}
    monkeypatch.setattr(own_check, "checked_with_own", lambda _, chosen: answers.pop(chosen.name))
    assert main(["learn", "check", str(folder.path), "heads", "--own"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"4. Many heads: right\n{verdict.lines[0]}\n")


def test_hints_of_the_current_lesson_and_of_a_named_one(folder, capsys):
    assert main(["learn", "hint", str(folder.path), "--number", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Hint 2 of 3, Scaled dot-product attention:\n")
    # The next command works as written.
    *_, words = printed.rstrip().partition("Next: glassformer ")
    assert main(shlex.split(words)) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Hint 3 of 3, Scaled dot-product attention:\n")
    *_, words = printed.rstrip().partition("Next: glassformer ")
    assert words == f"learn solution {folder.path} attention"
    assert main(shlex.split(words)) == 0
    assert "\n--- your scaled_dot_product_attention\n" in capsys.readouterr().out
    assert main(["learn", "hint", str(folder.path), "beam"]) == 0
    assert capsys.readouterr().out.startswith("Hint 1 of 3, penalty:\n")


def test_a_hint_is_on_the_first_hole_that_is_not_right(folder, capsys):
    padding = lesson("padding")
    body = "    return (tokens != pad)[:, None, None, :]\n"
    text = padding.template.replace(HOLE, body, 1)
    folder.file(padding).write_text(text, encoding="utf-8")
    assert main(["learn", "hint", str(folder.path), "padding"]) == 0
    assert capsys.readouterr().out.startswith("Hint 1 of 3, masked_softmax:\n")
    folder.file(padding).write_text(text.replace("!=", "=="), encoding="utf-8")
    assert main(["learn", "hint", str(folder.path), "padding"]) == 0
    assert capsys.readouterr().out.startswith("Hint 1 of 3, padding_mask:\n")
    folder.file(padding).write_text("def padding_mask(:\n", encoding="utf-8")
    assert main(["learn", "hint", str(folder.path), "padding"]) == 0
    assert capsys.readouterr().out.startswith("Hint 1 of 3, padding_mask:\n")


def test_the_solution_is_the_packages_source_as_a_diff(folder, capsys):
    assert main(["learn", "solution", str(folder.path), "2"]) == 0
    diff = capsys.readouterr().out
    assert "\n-raise NotImplementedError\n" in diff
    assert "+++ glassformer.model.masks.padding_mask" in diff
    assert lesson("2").questions[1].answer.split()[0] in diff


def test_status_as_text_and_as_svg(folder, capsys, tmp_path):
    assert main(["learn", "check", str(folder.path)]) == 0
    capsys.readouterr()
    assert main(["learn", "status", str(folder.path), "--out", str(tmp_path / "mine.svg")]) == 0
    printed = capsys.readouterr().out
    assert "[x]  1. Scaled dot-product attention" in printed
    assert "[ ]  2." in printed
    xml.etree.ElementTree.parse(tmp_path / "mine.svg")


def test_reset_keeps_the_old_file(folder, capsys):
    file = folder.file(ATTENTION)
    before, old = file.read_bytes(), file.with_name(file.name + ".old")
    assert main(["learn", "reset", str(folder.path), "attention"]) == 0
    assert capsys.readouterr().out == f"wrote {file}; yours is {old}\n"
    assert file.read_text(encoding="utf-8") == ATTENTION.template
    assert old.read_bytes() == before


def test_a_second_reset_does_not_lose_the_learners_file(folder, capsys):
    file = folder.file(ATTENTION)
    before = file.read_bytes()
    for _ in range(2):
        assert main(["learn", "reset", str(folder.path), "attention"]) == 0
    assert capsys.readouterr().out.endswith(f"\nwrote {file}\n")
    assert file.with_name(file.name + ".old").read_bytes() == before


def test_inside_of_the_folder_its_name_may_be_left_out(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder.path)
    for words in (["check"], ["check", "my-transformer", "attention"]):
        assert main(["learn", *words]) == 0
        assert "Answers: glassformer learn solution . attention" in capsys.readouterr().out
    (folder.path / "my-transformer").mkdir()
    assert main(["learn", "hint", "my-transformer"]) == 1
    assert "my-transformer has no lessons" in capsys.readouterr().err


def test_a_lessons_file_or_name_stands_for_its_folder_too(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder.path)
    for word in (str(folder.file(ATTENTION)), ATTENTION.file_name, "attention", "1"):
        assert main(["learn", "check", word]) == 0
        assert "1. Scaled dot-product attention: right" in capsys.readouterr().out
    assert main(["learn", "status", ATTENTION.file_name]) == 1
    assert "01_attention.py is a file: expected a folder" in capsys.readouterr().err


def test_the_list_says_what_one_knows_afterwards(capsys):
    assert main(["learn", "--list"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("Afterwards you know") == len(EVERY)


def test_what_is_mistyped_is_named(refused, tmp_path):
    assert refused("learn", "chek") == (
        2,
        "unknown action 'chek' (did you mean 'check'?); a new folder: ./chek",
    )
    for words in (["chekc", "mine"], ["chekc", "--notebook", "mine"]):
        status, line = refused("learn", *words)
        assert (status, "did you mean 'check'?" in line) == (2, True)
    status, line = refused("learn", "hint", tmp_path)
    assert (status, "has no lessons" in line) == (1, True)


def test_csv_is_for_a_class(tmp_path, capsys):
    Folder(tmp_path).make()
    assert main(["learn", "check", str(tmp_path), "--csv"]) == 2
    assert "is one learner's folder: give its parent" in capsys.readouterr().err
    (tmp_path / "class").mkdir()
    Folder(tmp_path / "class" / "ada").make()
    assert main(["learn", "check", str(tmp_path / "class"), "--own"]) == 2
    assert "has several learners' folders: give one" in capsys.readouterr().err
    assert main(["learn", "check", str(tmp_path), "--csv", "--json"]) == 2
    assert "--csv and --json: give one of them" in capsys.readouterr().err
