"""Decoding step by step: the most probable next pieces of each step."""

import math
from typing import Any

from glassformer.errors import UsageError
from glassformer.inspection.plots.canvas import COLOURS, GREY, INK, Axes, Figure, Rectangle, sheet
from glassformer.inspection.plots.from_trace import chosen_steps
from glassformer.inspection.plots.lettering import noted, text_inches, write
from glassformer.inspection.trace.schema import Candidate, Step, Trace
from glassformer.inspection.trace.subwords import label

__all__ = ["plot_steps"]

_ROW, _HEAD, _GAP = 0.2, 0.34, 0.25  # inches: a bar, the line above the bars, between steps
_BAR = 1.2  # inches: the bar of probability 1
_LETTERS = 8.0
_OTHERS = "#9ecae1"


def plot_steps(trace: Trace, *, first: int = 0, count: int | None = None, top: int = 5) -> Figure:
    """The ``top`` candidates of each step as bars; the bar of the written piece is dark.

    A written piece outside the ``top`` stands below them with its rank. ``first`` (an index) and
    ``count`` choose steps, by default all.

    Raises:
        UsageError: there is no such step, or ``top`` is below 1.
    """
    if top < 1:
        raise UsageError(f"top {top}: expected at least 1 candidate a step")
    steps = [trace.steps[step] for step in chosen_steps(len(trace.steps), first, count)]
    lines = [_lines(step, top) for step in steps]
    words = max(text_inches(label(c.piece), _LETTERS) for line in lines for c in line)
    width = max(words + _BAR + 0.75, 2.2)
    columns = min(len(steps), int(13 / width))
    height = _HEAD + _GAP + _ROW * max(map(len, lines))
    rows = math.ceil(len(steps) / columns)
    figure, axes = sheet(max(columns * width + 0.3, 6.0), rows * height + 0.6)
    title = "Candidates for the next piece, and their probability in %"
    axes.text(0.2, 0.25, title, fontsize=11, color=INK, va="center")
    for place, (step, line) in enumerate(zip(steps, lines, strict=True)):
        row, column = divmod(place, columns)
        left, above = 0.2 + column * width, 0.5 + row * height
        _write_head(axes, step, label(trace.target.read[step.step].piece), left, above + 0.15)
        for number, candidate in enumerate(line):
            middle = above + _HEAD + (number + 0.5) * _ROW
            _draw_bar(axes, candidate, step, left + words, middle)
    return noted(figure)


def _lines(step: Step, top: int) -> list[Candidate]:
    """The candidates in the picture, and the written piece."""
    shown = step.candidates[:top]
    return (
        shown
        if step.written.id in {candidate.id for candidate in shown}
        else [*shown, step.written]
    )


def _write_head(axes: Axes, step: Step, read: str, left: float, middle: float) -> None:
    forced = " (forced)" if step.forced else ""
    style: dict[str, Any] = {"fontsize": _LETTERS, "va": "center", "color": GREY}
    axes.text(left, middle, f"step {step.step + 1}{forced} reads", **style)
    right = left + text_inches("step 00 reads", _LETTERS) * (1.0 if not forced else 1.7)
    write(axes, right, middle, read, fontsize=_LETTERS, fontweight="bold")


def _draw_bar(axes: Axes, candidate: Candidate, step: Step, left: float, middle: float) -> None:
    """The bar with its piece to the left and its probability to the right."""
    written = candidate.id == step.written.id
    weight = "bold" if written else "normal"
    write(
        axes,
        left - 0.06,
        middle,
        label(candidate.piece),
        ha="right",
        fontsize=_LETTERS,
        fontweight=weight,
    )
    share = f"{100 * candidate.probability:.1f}"
    bar = Rectangle(
        (left, middle - 0.07),
        _BAR * candidate.probability,
        0.14,
        facecolor=COLOURS[0] if written else _OTHERS,
    )
    axes.add_patch(bar)
    axes.plot([left, left], [middle - 0.1, middle + 0.1], color="#c3c9cf", linewidth=0.8)
    rank = f"  rank {step.rank + 1}" if written and step.rank >= len(step.candidates) else ""
    axes.text(
        left + _BAR * candidate.probability + 0.05,
        middle,
        f"{share if candidate.probability >= 0.0005 else '<0.1'}{rank}",
        fontsize=7,
        color=GREY,
        va="center",
    )
