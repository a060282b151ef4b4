"""A check with the learner's own earlier parts: right together, and each way to be wrong."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from glassformer.tools.learn import examine, own_check
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import lesson, lessons
from glassformer.tools.learn.own_check import checked_with_own
from glassformer.tools.learn.worker import answer_on
from tests.lessons import ATTENTION, RIGHT, folder_with
from tests.tools.learn.test_solutions import right_file

HEADS, SCALE = lesson("heads"), " / math.sqrt(query.size(-1))"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Right files of attention and heads, checked in this process; all others are not begun."""
    here = SimpleNamespace(
        answer=lambda chosen, file, own=None: answer_on(file, chosen.name, own=own)
    )
    for module in (examine, own_check):
        monkeypatch.setattr(module, "Worker", lambda: nullcontext(here))
    folder = folder_with(tmp_path / "mine")
    folder.file(HEADS).write_text(right_file(HEADS), encoding="utf-8")
    return folder


def write_wrong_attention(folder):
    text = ATTENTION.template.replace("    raise NotImplementedError\n", RIGHT.replace(SCALE, ""))
    folder.file(ATTENTION).write_text(text, encoding="utf-8")
    return text


def test_a_wrong_earlier_part_is_named_first(folder):
    write_wrong_attention(folder)
    chosen, verdict = checked_with_own(folder, HEADS)
    assert (chosen, verdict.mistakes) == (ATTENTION, (("scale-missing",),))
    assert verdict.lines[0] == f"This earlier part of yours is wrong: {folder.file(ATTENTION)}"
    assert not folder.learned(HEADS)


def test_a_wrong_part_that_its_own_check_lets_through_is_named_by_the_later_lesson(folder):
    folder.note_right(ATTENTION, write_wrong_attention(folder).encode())
    chosen, verdict = checked_with_own(folder, HEADS)
    assert (chosen, verdict.hole) == (HEADS, "MultiHeadAttention.attend")
    line = "Your file is right with the package's parts, and wrong with yours of 1, Scaled"
    assert verdict.lines[0].startswith(line)


def test_parts_that_are_not_written_yet_are_the_packages(folder):
    padding = lesson("padding")
    folder.file(padding).write_text(padding.template + "\n", encoding="utf-8")
    chosen, verdict = checked_with_own(folder, HEADS)
    assert (chosen, verdict.outcome) == (HEADS, "right")
    assert verdict.lines == ("It runs with your parts of these lessons: attention.",)
    folder.file(HEADS).write_text(HEADS.template, encoding="utf-8")
    assert checked_with_own(folder, HEADS)[1].outcome == "empty"


@pytest.mark.usefixtures("nightly")
def test_all_lessons_of_the_walk_are_right_with_its_own_parts(tmp_path):
    """The last one also in a process of its own, where nothing of this one is left."""
    folder = Folder(tmp_path)
    for each in lessons():
        text = right_file(each)
        folder.file(each).write_text(text, encoding="utf-8")
        folder.note_right(each, text.encode())
    files = {each.name: folder.file(each) for each in lessons()}
    for each in lessons():
        others = {name: file for name, file in files.items() if name != each.name}
        answer = answer_on(files[each.name], each.name, others)
        assert examine.verdict_on(each, files[each.name], answer).outcome == "right"
    assert checked_with_own(folder, lesson("whole"))[1].outcome == "right"
