"""The layer lens: the piece that each decoder layer would write if it were the last.

The state after each layer goes through the last LayerNorm and the output matrix. The idea is
nostalgebraist's logit lens (2020). No layer but the last is trained for this: early layers may
give nonsense.
"""

from typing import Any

import torch

from glassformer.inspection.plots.canvas import (
    COLOURS,
    INK,
    Axes,
    Figure,
    Rectangle,
    draw_matrix,
    draw_scale,
    new_figure,
)
from glassformer.inspection.plots.from_trace import chosen_steps
from glassformer.inspection.plots.lettering import label_tokens, noted, text_inches, write
from glassformer.inspection.trace.schema import Step, Trace
from glassformer.inspection.trace.subwords import label

__all__ = ["plot_lens"]

_ROW = 0.28  # inches
_LETTERS = 8.5


def plot_lens(trace: Trace, *, first: int = 0, count: int | None = None) -> Figure:
    """A row for each step, a column for each layer: its most probable piece, shaded by probability.

    A frame marks the piece that the model wrote in the end. In other squares the number is the
    layer's rank of the written piece, from 1.

    Raises:
        UsageError: there is no such step.
    """
    steps = [trace.steps[step] for step in chosen_steps(len(trace.steps), first, count)]
    best = torch.tensor([[layer[0].probability for layer in step.lens] for step in steps])
    pieces = [label(layer[0].piece) for step in steps for layer in step.lens]
    written = [label(step.written.piece) for step in steps]
    column = max(text_inches(word, _LETTERS) for word in pieces) + 0.55
    figure = new_figure(
        max(column * best.size(1) + max(text_inches(word, 10.0) for word in written) + 1.7, 5.6),
        _ROW * len(steps) + 1.2,
    )
    axes = figure.subplots()
    image = draw_matrix(axes, best, vmin=0.0, vmax=1.0, aspect="auto")
    label_tokens(axes, rows=written, cell=_ROW)
    names = [f"after layer {layer + 1}" for layer in range(best.size(1))]
    axes.set_xticks(range(best.size(1)), names)
    axes.tick_params(labeltop=True, labelbottom=False, labelsize=9)
    for row, step in enumerate(steps):
        _write_row(axes, row, step)
    axes.set_ylabel("written")
    figure.suptitle("The piece that each decoder layer would write", fontsize=11)
    draw_scale(figure, image, axes, label="probability")
    return noted(figure)


def _write_row(axes: Axes, row: int, step: Step) -> None:
    for column, (layer, rank) in enumerate(zip(step.lens, step.lens_rank, strict=True)):
        style: dict[str, Any] = {"color": "white" if layer[0].probability > 0.55 else INK}
        place = float(column), float(row)
        write(axes, *place, label(layer[0].piece), ha="center", fontsize=_LETTERS, **style)
        if layer[0].id == step.written.id:
            frame = Rectangle((column - 0.47, row - 0.43), 0.94, 0.86)
            frame.set(facecolor="none", edgecolor=COLOURS[1], linewidth=1.8)
            axes.add_patch(frame)
        else:
            axes.text(
                column + 0.46, row, f"#{rank + 1}", fontsize=6.5, ha="right", va="center", **style
            )
