"""Figure 1 of the paper as the map of the lessons: an SVG whose boxes lead to their pages."""

import io
import re
from dataclasses import replace

import matplotlib

from glassformer.tools.inspection.plots.figure1 import plot_boxes
from glassformer.tools.learn.lesson import Lesson, lesson
from glassformer.tools.learn.status import own_boxes

__all__ = ["lesson_map"]

# The lesson of a box by the box's name; the first match counts.
_LESSONS = (
    (r".*embedding|output", "embeddings"),
    (r".*positions", "positions"),
    (r".*norm|.*feed_forward", "blocks"),
    (r"encoder.*self_attention", "heads"),
    (r"decoder.*self_attention", "causal"),
    (r".*cross_attention", "decoder"),
    (r"softmax", "greedy"),
)
_FEET = {"encoder": ("source", ""), "decoder": ("target", "")}
_SCALE = 0.43  # of the plain picture, with letters as large: a telephone is 400 pixels wide


def lesson_map(folder: str) -> str:
    """The map as HTML; ``folder`` leads from its page to the pages of the lessons."""
    boxes = {box.name: box for box in own_boxes(())}
    goals = {name: _lesson_of(name) for name in boxes}
    numbered = [replace(box, section=str(goals[name].number)) for name, box in boxes.items()]
    # Each box leads to its own name at first: the page's address and words take its place.
    figure = plot_boxes(numbered, _FEET, links={name: name for name in boxes})
    figure.set_size_inches(figure.get_size_inches() * _SCALE)
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "glassformer"}):
        look = {"bbox_inches": "tight", "pad_inches": 0.02, "transparent": True}
        figure.savefig(buffer, format="svg", **look)

    def link(found: re.Match[str]) -> str:
        goal = goals[found[1]]
        words = f"{boxes[found[1]].title}: lesson {goal.number}, {goal.title}"
        return f'<a href="{folder}{goal.name}.html" aria-label="{words.replace("&", "&amp;")}">'

    svg = buffer.getvalue()
    svg = re.sub(r"<(metadata|style).*?</\1>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'<a xlink:href="([^"]*)"[^>]*>', link, svg)
    name = "Figure 1 of the paper: each box leads to its lesson"
    return f'<figure class="lesson-map" aria-label="{name}">\n{svg}</figure>\n'


def _lesson_of(box: str) -> Lesson:
    return lesson(next(name for pattern, name in _LESSONS if re.fullmatch(pattern, box)))
