"""Figure 1 with the learner's own parts, in terminals of any width."""

import io

import pytest
from rich.console import Console

from glassformer.tools.learn import status
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.status import own_boxes, print_status


def test_a_box_is_yours_if_all_its_lessons_are_learned():
    boxes = {box.name: box.own for box in own_boxes({"attention", "heads", "padding"})}
    assert boxes["encoder.blocks.0.self_attention"] == "yours"
    assert boxes["decoder.blocks.0.self_attention"] == "partly yours"
    assert boxes["encoder.blocks.0.feed_forward"] is None


@pytest.mark.parametrize("width", [30, 60, 80, 100, 120])
def test_no_line_is_wider_than_the_terminal(tmp_path, width):
    folder = Folder(tmp_path)
    folder.make()
    for name in ("attention", "heads", "padding", "positions"):
        folder.note_right(lesson(name), folder.file(lesson(name)).read_bytes())
    out = io.StringIO()
    print_status(Console(file=out, width=width), folder)
    assert all(len(line) <= width for line in out.getvalue().splitlines()[:-1])  # a path is whole
    assert "[x]  5. " in out.getvalue()
    assert "[ ]  6. " in out.getvalue()
    if width >= 60:  # figure 1 is whole
        assert [" ".join(line.split()) for line in out.getvalue().splitlines()[:11]] == [
            "[ ] Softmax",
            "[ ] Linear",
            "[ ] Add & Norm",
            "[ ] Feed Forward",
            "[ ] Add & Norm [ ] Add & Norm",
            "[ ] Feed Forward [x] Multi-Head Attention",
            "[ ] Add & Norm [ ] Add & Norm",
            "[x] Multi-Head Attention [/] Masked Multi-Head Attention",
            "[x] Positional Encoding [x] Positional Encoding",
            "[ ] Input Embedding [ ] Output Embedding",
            "[x] yours [/] partly yours one block of N",
        ]


def test_a_terminal_of_24_rows_ends_with_the_whole_list_and_the_next_lesson(tmp_path):
    out = io.StringIO()
    print_status(Console(file=out, width=80), Folder(tmp_path))
    lines = out.getvalue().splitlines()[-20:]
    assert lines[-1] == f"Next: lesson 1, Scaled dot-product attention: {tmp_path}/01_attention.py"
    assert [line[4:7] for line in lines[-17:-2]] == [f"{number:2}." for number in range(1, 16)]


def test_a_tiny_model_is_made_for_the_titles(tmp_path, monkeypatch):
    monkeypatch.setattr(status, "presets", {"tiny": status.presets["tiny"]})
    print_status(Console(file=io.StringIO()), Folder(tmp_path))
