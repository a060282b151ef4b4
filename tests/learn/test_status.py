"""Figure 1 with the learner's own parts, in terminals of any width."""

import io

import pytest
from rich.console import Console

from glassformer.learn import status
from glassformer.learn.folder import Folder
from glassformer.learn.lesson import lesson
from glassformer.learn.status import own_boxes, print_status


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
    figure, _, listed = out.getvalue().partition("\n\n")
    assert all(len(line) <= width for line in out.getvalue().splitlines())
    if width >= 60:
        assert len(figure.splitlines()) == 11  # ten boxes of the decoder, and the marks
        assert "[/] Masked Multi-Head Attention" in figure
        assert "\n[x] Multi-Head Attention" in figure
    assert "[x]  5. " in listed
    assert "[ ]  6. " in listed


def test_a_tiny_model_is_made_for_the_titles(tmp_path, monkeypatch):
    monkeypatch.setattr(status, "presets", {"tiny": status.presets["tiny"]})
    print_status(Console(file=io.StringIO()), Folder(tmp_path))
