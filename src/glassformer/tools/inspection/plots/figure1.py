"""The picture of the paper's figure 1 for one model, with shapes and parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any

from glassformer.tools.inspection.plots.canvas import GREY, INK, Axes, Figure, Rectangle, sheet
from glassformer.tools.inspection.plots.lettering import noted, write
from glassformer.tools.inspection.trace.schema import Box, Trace

__all__ = ["plot_boxes", "plot_figure1"]

# Inches, from the lower left corner.
_WIDTH, _HEIGHT, _NORM = 2.9, 0.64, 0.3
_GAP, _PAD, _ASIDE = 0.36, 0.14, 0.16  # between boxes; around a block; from a box to a side line
_LEFT = {"encoder": 1.0, "decoder": 5.3, "output": 5.3}
_FOOT = 0.62
_LETTERS = 14  # letters in a line of a box with a link
_PAGE = 9.2
_TINTS = {"Attention": "#9ecae1", "Feed Forward": "#c6dbef", "Norm": "#f1f3f5", "": "#deebf7"}
_OWN, _MISTAKE = "#1f7a3d", "#b5364a"
_LINE: dict[str, Any] = {"color": GREY, "linewidth": 1.1}
_ARROW = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0} | _LINE
_CENTRED: dict[str, Any] = {"fontsize": 8, "color": INK, "ha": "center", "va": "center"}
_BOLD = {"weight": "bold"}
_CIRCLE = {"boxstyle": "circle,pad=0.05", "facecolor": "white", "edgecolor": GREY, "linewidth": 0.8}


@dataclass(frozen=True)
class _Drawn:
    box: Box
    left: float
    bottom: float
    height: float

    @property
    def right(self) -> float:
        return self.left + _WIDTH

    @property
    def top(self) -> float:
        return self.bottom + self.height

    @property
    def middle(self) -> float:
        return self.left + _WIDTH / 2


def plot_figure1(trace: Trace) -> Figure:
    """Figure 1 of a trace's model, with the trace's sentence at the foot."""
    source, target = trace.bounds.source_pieces, trace.bounds.target_pieces
    feet = {
        "encoder": (trace.source.text, f"{source} source pieces"),
        "decoder": (trace.target.text, f"{target} target pieces, one step late"),
    }
    return plot_boxes(trace.figure, feet)


def plot_boxes(
    boxes: Sequence[Box], feet: dict[str, tuple[str, str]], *, links: dict[str, str] | None = None
) -> Figure:
    """Every box of a model with input shape, output shape and parameters.

    Shapes are without the batch, length first. The picture has one layer of each stack, with
    ``N ×`` beside it, as in the paper. In a pre-norm model Norm stands before the sublayer and the
    sum behind the sublayer. ``feet`` has two texts below each stack. ``links`` give boxes of an SVG
    an address by name; a box with an address shows only the title.
    """
    columns = {
        "encoder": _column([box for box in boxes if box.stack == "encoder"]),
        "decoder": _column([box for box in boxes if box.stack != "encoder"]),
    }
    top = columns["decoder"][-1]
    height = top.top + 1.0
    figure, axes = sheet(_PAGE, height)
    axes.set_ylim(0.0, height)  # upwards, as the data goes
    title = f"Figure 1 of this model: {sum(box.parameters for box in boxes):,} parameters"
    if not links:
        axes.text(0.2, height - 0.25, title, fontsize=11, color=INK, va="center")
    titles = {box.name: box.title for box in boxes}
    for stack, column in columns.items():
        layers = 1 + max(box.layer or 0 for box in boxes if box.stack == stack)
        _draw_block(axes, [drawn for drawn in column if drawn.box.layer is not None], layers)
        for below, drawn in zip([None, *column], column, strict=False):
            _draw_box(axes, drawn, titles, link=links[drawn.box.name] if links else None)
            start = below.top if below else _FOOT - 0.05
            if drawn.bottom > start:
                _draw_arrow(axes, (drawn.middle, start), (drawn.middle, drawn.bottom))
        text, count = feet[stack]
        write(axes, column[0].middle, 0.42, text, fontsize=9, ha="center")
        axes.text(column[0].middle, 0.2, count, **_CENTRED | {"color": GREY})
    _draw_memory(axes, columns["encoder"][-1], columns["decoder"])
    _draw_arrow(axes, (top.middle, top.top), (top.middle, top.top + 0.25))
    output = "probabilities of the next piece"
    axes.text(top.middle, top.top + 0.36, output, **_CENTRED | {"color": GREY})
    return noted(figure)


def _column(boxes: Sequence[Box]) -> list[_Drawn]:
    """The boxes of the first layer, one above another. Only a pre-norm stack ends in a Norm."""
    shown = [box for box in boxes if box.layer in (None, 0)]
    if any(box.title == "Norm" for box in boxes):
        for place in range(2, len(shown) - 1, 2):
            if shown[place].layer == 0:
                norm = replace(shown[place + 1], title="Norm")
                shown[place : place + 2] = [norm, shown[place]]
    column: list[_Drawn] = []
    bottom = _FOOT
    for box in shown:
        before = column[-1].box if column else None
        if before is None or before.name.removesuffix(".norm") != box.name.removesuffix(".norm"):
            bottom += _GAP
        if before is not None and (before.layer is None) != (box.layer is None):
            bottom += _PAD
        height = _NORM if box.layer == 0 and box.name.endswith(".norm") else _HEIGHT
        column.append(_Drawn(box, _LEFT[box.stack], bottom, height))
        bottom += height
    return column


def _draw_box(axes: Axes, drawn: _Drawn, titles: dict[str, str], *, link: str | None) -> None:
    box, learned = drawn.box, _learned(drawn.box, titles)
    tint = next(tint for word, tint in _TINTS.items() if word in box.title)
    look: dict[str, Any] = {"facecolor": tint, "edgecolor": GREY, "lw": 0.8, "url": link}
    axes.add_patch(Rectangle((drawn.left, drawn.bottom), _WIDTH, drawn.height, **look))
    corner = (drawn.right - 0.05, drawn.top - 0.04)
    axes.text(*corner, box.section, fontsize=7 if link else 6.5, color=GREY, ha="right", va="top")
    plain: dict[str, Any] = {}
    lines = [(box.title, _BOLD | {"fontsize": 9}), (_shapes(box), plain), (learned, plain)]
    if drawn.height < _HEIGHT:
        lines = [(f"{box.title}: {learned}", plain)]
    if link:
        lines = [(fill(box.title, _LETTERS), _BOLD | {"fontsize": 9, "linespacing": 1.0})]
    if box.own:
        lines.append((box.own, _BOLD | {"color": _OWN if "yours" in box.own else _MISTAKE}))
    step = drawn.height / (len(lines) + 0.4)
    for number, (line, style) in enumerate(lines):
        axes.text(drawn.middle, drawn.top - (number + 0.7) * step, line, **_CENTRED | style)


def _shapes(box: Box) -> str:
    shapes = [" × ".join(map(str, shape)) for shape in (box.input_shape, box.output_shape)]
    text = " → ".join(dict.fromkeys(shapes))
    if box.inner_shape is None:
        return text
    return f"{text}, inside {' × '.join(map(str, box.inner_shape))}"


def _learned(box: Box, titles: dict[str, str]) -> str:
    learned = f"{box.parameters:,} parameters" if box.parameters else ""
    shared = f"shared with {titles[box.shared_with]}" if box.shared_with else ""
    return " and ".join(filter(None, (learned, shared))) or "no parameters"


def _draw_block(axes: Axes, block: Sequence[_Drawn], layers: int) -> None:
    """Draw a layer's frame, the number of layers, and the residual connections beside it."""
    left, bottom = block[0].left - 2 * _ASIDE, block[0].bottom - _GAP
    width, height = _WIDTH + 4 * _ASIDE, block[-1].top + 0.2 - bottom
    frame = Rectangle((left, bottom), width, height, facecolor="none", edgecolor="#c3c9cf", lw=1.2)
    axes.add_patch(frame)
    outward = -1 if block[0].box.stack == "encoder" else 1
    edge = left if outward < 0 else left + width
    align = "right" if outward < 0 else "left"
    count = (edge + 0.15 * outward, bottom + height / 2)
    axes.text(*count, f"{layers} ×", fontsize=13, color=INK, ha=align)
    for lower, upper in zip(block[::2], block[1::2], strict=True):
        end = lower.left if outward < 0 else lower.right
        aside = end + _ASIDE * outward
        below, beside = lower.bottom - 0.15, upper.bottom + _NORM / 2
        if lower.height < upper.height:  # in pre-norm, the sum comes last
            beside, end = upper.top + 0.1, lower.middle + 0.07 * outward
            axes.text(lower.middle, beside, "+", bbox=_CIRCLE, **_CENTRED)
        axes.plot([lower.middle, aside, aside], [below, below, beside], **_LINE)
        _draw_arrow(axes, (aside, beside), (end, beside))


def _draw_memory(axes: Axes, last: _Drawn, decoder: Sequence[_Drawn]) -> None:
    """Draw the arrow from the encoder's output to the cross-attention."""
    cross = next(drawn for drawn in decoder if drawn.box.name.endswith("cross_attention"))
    between, above = (last.right + cross.left) / 2, last.top + 0.2
    into = cross.bottom + cross.height / 2
    axes.plot([last.middle, last.middle, between, between], [last.top, above, above, into], **_LINE)
    _draw_arrow(axes, (between, into), (cross.left, into))
    axes.text(last.middle + 0.08, above + 0.09, "memory", fontsize=8, color=GREY, va="center")


def _draw_arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops=_ARROW)
