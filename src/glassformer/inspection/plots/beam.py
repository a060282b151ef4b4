"""A beam search as a tree: hypotheses that went on, ended, or left the beam."""

from typing import Any

from glassformer.inspection.plots.canvas import (
    COLOURS,
    GREY,
    INK,
    Axes,
    Figure,
    Rectangle,
    number,
    sheet,
)
from glassformer.inspection.plots.from_trace import chosen_steps
from glassformer.inspection.plots.lettering import noted, text_inches, write
from glassformer.inspection.trace.schema import BeamNode, Trace
from glassformer.inspection.trace.subwords import label

__all__ = ["plot_beam"]

_ROW, _BOX, _BETWEEN = 0.42, 0.34, 0.42  # inches: a line, a box's height, the room for the edges
_LETTERS, _SMALL = 8.0, 6.5  # points
_LOOKS: dict[str, dict[str, Any]] = {
    "answer": {"facecolor": COLOURS[0], "edgecolor": COLOURS[0]},
    "alive": {"facecolor": "#c6dbef", "edgecolor": "#6baed6"},
    "finished": {"facecolor": "white", "edgecolor": COLOURS[0], "linewidth": 2.0},
    "open": {"facecolor": "#eff3f8", "edgecolor": "#6baed6", "linestyle": ":"},
    "pruned": {"facecolor": "white", "edgecolor": "#d3d8dd"},
}
_MEANINGS = {
    "answer": "part of the answer",
    "alive": "went on",
    "finished": "ended here",
    "open": "unfinished at the end",
    "pruned": "left the beam",
}


def plot_beam(
    trace: Trace, *, first: int = 0, count: int | None = None, pruned: bool = True
) -> Figure:
    """A column for each step, its candidates from the most to the least probable.

    Below each piece stand the log-probability of the hypothesis up to it and its score: the
    log-probability over the length penalty, which ranks finished hypotheses. ``first`` (an index)
    and ``count`` choose steps, by default all. ``pruned=False`` leaves out dropped candidates.

    Raises:
        UsageError: there is no such step.
    """
    graph = trace.beam
    chosen = chosen_steps(max(node.step for node in graph.nodes) + 1, first, count)
    answer = set(graph.best)
    columns: list[list[BeamNode]] = [[graph.nodes[0]]] if first == 0 else []
    for step in chosen:
        nodes = [node for node in graph.nodes if node.step == step]
        kept = [node for node in nodes if pruned or node.status != "pruned" or node.id in answer]
        columns.append(sorted(kept, key=lambda node: node.rank))
    widths = [max([_width(node) for node in nodes], default=0.5) for nodes in columns]
    rows = max(map(len, columns))
    width = sum(widths) + _BETWEEN * (len(columns) - 1) + 0.4
    figure, axes = sheet(max(width, 8.0), rows * _ROW + 1.45)
    title = f"Beam search: beam {graph.beam}, length penalty {graph.length_penalty:g}"
    axes.text(0.2, 0.25, title, fontsize=11, color=INK, va="center")
    drawn: dict[int, tuple[float, float]] = {}  # the right side of each node
    left = 0.2
    for nodes, breadth in zip(columns, widths, strict=True):
        heading = "start" if nodes and nodes[0].step < 0 else f"step {nodes[0].step + 1}"
        axes.text(left, 0.6, heading, fontsize=_LETTERS, color=GREY, va="center")
        for row, node in enumerate(nodes):
            middle = 0.75 + (row + 0.5) * _ROW
            look = "answer" if node.id in answer else node.status
            if node.parent in drawn:
                _draw_edge(axes, drawn[node.parent], (left, middle), look)
            _draw_node(axes, node, (left, middle), breadth, look)
            drawn[node.id] = (left + breadth, middle)
        left += breadth + _BETWEEN
    _draw_legend(axes, rows * _ROW + 1.0, pruned=pruned)
    return noted(figure)


def _numbers(node: BeamNode) -> str:
    return f"{number(node.log_probability, 2)} | {number(node.score, 2)}"


def _width(node: BeamNode) -> float:
    word = text_inches(label(node.piece), _LETTERS)
    return max(word, text_inches(_numbers(node), _SMALL)) + 0.1


def _draw_edge(axes: Axes, start: tuple[float, float], end: tuple[float, float], look: str) -> None:
    style = {"answer": (COLOURS[0], 2.0), "pruned": ("#d3d8dd", 0.7)}.get(look, ("#6baed6", 1.0))
    axes.plot(*zip(start, end, strict=True), color=style[0], linewidth=style[1], zorder=0.5)


def _draw_node(
    axes: Axes, node: BeamNode, place: tuple[float, float], width: float, look: str
) -> None:
    left, middle = place
    box = Rectangle((left, middle - _BOX / 2), width, _BOX, **_LOOKS[look])
    axes.add_patch(box)
    dark = "white" if look == "answer" else GREY if look == "pruned" else INK
    style: dict[str, Any] = {"color": dark, "ha": "center"}
    centre = left + width / 2
    write(axes, centre, middle - 0.07, label(node.piece), fontsize=_LETTERS, **style)
    axes.text(centre, middle + 0.09, _numbers(node), fontsize=_SMALL, va="center", **style)


def _draw_legend(axes: Axes, middle: float, *, pruned: bool) -> None:
    left = 0.2
    for look, meaning in _MEANINGS.items():
        if look == "pruned" and not pruned:
            continue
        axes.add_patch(Rectangle((left, middle - 0.07), 0.22, 0.14, **_LOOKS[look]))
        axes.text(left + 0.3, middle, meaning, fontsize=_LETTERS, color=INK, va="center")
        left += 0.066 * len(meaning) + 0.55
    note = "log-probability of the hypothesis | score: the same over the length penalty"
    axes.text(0.2, middle + 0.25, note, fontsize=7, color=GREY, va="center")
