"""The paper's figure 1 for one model and one sentence, with shapes and parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from glassformer.inspection.plots.canvas import GREY, INK, Axes, Figure, Rectangle, sheet
from glassformer.inspection.plots.lettering import noted, write
from glassformer.inspection.trace.schema import Box, Trace

__all__ = ["plot_figure1"]

# Inches, from the lower left corner.
_WIDTH, _HEIGHT, _NORM = 2.9, 0.64, 0.3
_GAP, _PAD, _ASIDE = 0.36, 0.14, 0.16  # between boxes, around a block, of a line beside it
_LEFT = {"encoder": 1.0, "decoder": 5.3}
_FOOT = 0.62
_PAGE = 9.2
_TINTS = {"Attention": "#9ecae1", "Feed Forward": "#c6dbef", "Norm": "#f1f3f5"}
_TINT = "#deebf7"
_LINE: dict[str, Any] = {"color": GREY, "linewidth": 1.1}
_PLUS: dict[str, Any] = {
    "fontsize": 8,
    "color": INK,
    "ha": "center",
    "va": "center",
    "bbox": {
        "boxstyle": "circle,pad=0.05",
        "facecolor": "white",
        "edgecolor": GREY,
        "linewidth": 0.8,
    },
}
_OWN = {"ha": "left", "color": "#1f7a3d", "weight": "bold"}
_ARROW = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0} | _LINE


@dataclass(frozen=True)
class _Drawn:
    box: Box
    left: float
    bottom: float
    height: float

    @property
    def top(self) -> float:
        return self.bottom + self.height

    @property
    def middle(self) -> float:
        return self.left + _WIDTH / 2


def plot_figure1(trace: Trace) -> Figure:
    """Every box of the model with its input and output shapes and its parameters.

    Shapes are without the batch, length first. The picture has one layer of each stack with
    ``N ×`` beside it, as in the paper, and that layer's parameters. In a pre-norm model Norm stands
    before the sublayer and the sum behind it.
    """
    encoder = _stack([box for box in trace.figure if box.stack == "encoder"], "encoder")
    decoder = _stack([box for box in trace.figure if box.stack != "encoder"], "decoder")
    height = decoder[-1].top + 1.0
    figure, axes = sheet(_PAGE, height)
    axes.set_ylim(0.0, height)  # upwards, as the data goes
    total = sum(box.parameters for box in trace.figure)
    title = f"Figure 1 of this model: {total:,} parameters"
    axes.text(0.2, height - 0.25, title, fontsize=11, color=INK, va="center")
    titles = {box.name: box.title for box in trace.figure}
    for stack, drawings in (("encoder", encoder), ("decoder", decoder)):
        layers = 1 + max(box.layer or 0 for box in trace.figure if box.stack == stack)
        _draw_block(
            axes, [drawn for drawn in drawings if drawn.box.layer is not None], layers, stack
        )
        _draw_flow(axes, drawings)
        for drawn in drawings:
            _draw_box(axes, drawn, titles)
    _draw_memory(axes, encoder[-1], decoder)
    _write_ends(axes, trace, encoder[0], decoder)
    return noted(figure)


def _stack(boxes: Sequence[Box], column: str) -> list[_Drawn]:
    """The boxes one above the other; only the first layer."""
    shown = [box for box in boxes if box.layer in (None, 0)]
    if any(box.name == f"{column}.norm" for box in boxes):
        shown = _norm_first(shown)
    drawings: list[_Drawn] = []
    bottom = _FOOT
    for box in shown:
        before = drawings[-1].box if drawings else None
        if before is None or not _one_block(before, box):
            bottom += _GAP
        if before is not None and (before.layer is None) != (box.layer is None):
            bottom += _PAD
        height = _NORM if box.layer == 0 and box.name.endswith(".norm") else _HEIGHT
        drawings.append(_Drawn(box, _LEFT[column], bottom, height))
        bottom = drawings[-1].top
    return drawings


def _norm_first(boxes: list[Box]) -> list[Box]:
    """Each norm before its sublayer, for pre-norm stacks: only they end in a norm."""
    inside = [box for box in boxes if box.layer is not None]
    pairs = zip(inside[::2], inside[1::2], strict=True)
    swapped = iter([box for pair in pairs for box in (replace(pair[1], title="Norm"), pair[0])])
    return [box if box.layer is None else next(swapped) for box in boxes]


def _one_block(one: Box, other: Box) -> bool:
    """Are they a sublayer and its norm?"""
    return f"{one.name}.norm" == other.name or one.name == f"{other.name}.norm"


def _draw_box(axes: Axes, drawn: _Drawn, titles: dict[str, str]) -> None:
    box = drawn.box
    tint = next((tint for word, tint in _TINTS.items() if word in box.title), _TINT)
    place = (drawn.left, drawn.bottom)
    axes.add_patch(Rectangle(place, _WIDTH, drawn.height, facecolor=tint, edgecolor=GREY, lw=0.8))
    section: dict[str, Any] = {"fontsize": 6.5, "color": GREY, "ha": "right", "va": "top"}
    axes.text(drawn.left + _WIDTH - 0.05, drawn.top - 0.04, box.section, **section)
    if box.own:
        axes.text(drawn.left + 0.05, drawn.top - 0.04, box.own, **section | _OWN)
    lines = [box.title, _shapes(box), _learnt(box, titles)]
    if drawn.height < _HEIGHT:
        lines = [f"{box.title}: {_learnt(box, titles)}"]
    step = drawn.height / (len(lines) + 0.4)
    for number, line in enumerate(lines):
        y = drawn.top - (number + 0.7) * step
        size, weight = (9, "bold") if number == 0 and len(lines) > 1 else (8, "normal")
        axes.text(
            drawn.middle, y, line, fontsize=size, weight=weight, color=INK, ha="center", va="center"
        )


def _shapes(box: Box) -> str:
    shapes = [" × ".join(map(str, shape)) for shape in (box.input_shape, box.output_shape)]
    text = " → ".join(dict.fromkeys(shapes))
    if box.inner_shape is None:
        return text
    return f"{text}, inside {' × '.join(map(str, box.inner_shape))}"


def _learnt(box: Box, titles: dict[str, str]) -> str:
    learned = f"{box.parameters:,} parameters" if box.parameters else ""
    shared = f"shared with {titles[box.shared_with]}" if box.shared_with else ""
    return " and ".join(filter(None, (learned, shared))) or "no parameters"


def _draw_block(axes: Axes, drawings: Sequence[_Drawn], layers: int, stack: str) -> None:
    """The frame of a layer, the number of layers, and the residual connections."""
    left, bottom = drawings[0].left - 2 * _ASIDE, drawings[0].bottom - _GAP
    width, height = _WIDTH + 4 * _ASIDE, drawings[-1].top + 0.2 - bottom
    frame = Rectangle((left, bottom), width, height, facecolor="none", edgecolor="#c3c9cf", lw=1.2)
    axes.add_patch(frame)
    outside = left - 0.15 if stack == "encoder" else left + width + 0.15
    align = "right" if stack == "encoder" else "left"
    axes.text(outside, bottom + height / 2, f"{layers} ×", fontsize=13, color=INK, ha=align)
    for lower, upper in zip(drawings[::2], drawings[1::2], strict=True):
        side = lower.left if stack == "encoder" else lower.left + _WIDTH
        aside = side - _ASIDE if stack == "encoder" else side + _ASIDE
        below, beside = lower.bottom - 0.15, upper.bottom + _NORM / 2
        if lower.height < upper.height:  # pre-norm: the sum comes last
            beside = upper.top + 0.1
            axes.text(lower.middle, beside, "+", **_PLUS)
            side = lower.middle + (-0.07 if stack == "encoder" else 0.07)
        axes.plot([lower.middle, aside, aside], [below, below, beside], **_LINE)
        axes.annotate("", (side, beside), (aside, beside), arrowprops=_ARROW)


def _draw_flow(axes: Axes, drawings: Sequence[_Drawn]) -> None:
    """An arrow into each box from the box below it, and one out of the last."""
    below = _FOOT - 0.05
    for drawn in drawings:
        if drawn.bottom > below:
            axes.annotate(
                "", (drawn.middle, drawn.bottom), (drawn.middle, below), arrowprops=_ARROW
            )
        below = drawn.top


def _draw_memory(axes: Axes, last: _Drawn, decoder: Sequence[_Drawn]) -> None:
    """The arrow from the encoder's output to the cross-attention."""
    cross = next(drawn for drawn in decoder if drawn.box.name.endswith("cross_attention"))
    between = (last.left + _WIDTH + cross.left) / 2
    above, into = last.top + 0.2, cross.bottom + cross.height / 2
    axes.plot([last.middle, last.middle, between, between], [last.top, above, above, into], **_LINE)
    axes.annotate("", (cross.left, into), (between, into), arrowprops=_ARROW)
    axes.text(last.middle + 0.08, above + 0.09, "memory", fontsize=8, color=GREY, va="center")


def _write_ends(axes: Axes, trace: Trace, first: _Drawn, decoder: Sequence[_Drawn]) -> None:
    """The texts at the foot, and the output at the top."""
    bounds = trace.bounds
    ends = (
        (first, trace.source.text, f"{bounds.source_pieces} source pieces"),
        (decoder[0], trace.target.text, f"{bounds.target_pieces} target pieces, one step late"),
    )
    style: dict[str, Any] = {"ha": "center", "va": "center"}
    for drawn, text, count in ends:
        write(axes, drawn.middle, 0.42, text, fontsize=9, **style)
        axes.text(drawn.middle, 0.2, count, fontsize=8, color=GREY, **style)
    top = decoder[-1]
    axes.annotate("", (top.middle, top.top + 0.25), (top.middle, top.top), arrowprops=_ARROW)
    output = "probabilities of the next piece"
    axes.text(top.middle, top.top + 0.36, output, fontsize=8, color=GREY, **style)
