"""Scores of one head before and after the mask, and its weights (section 3.2.3)."""

import math

import torch
from torch import Tensor

from glassformer.inspection.plots.canvas import (
    BLUES,
    Axes,
    Figure,
    draw_matrix,
    draw_scale,
    hiding,
    new_figure,
    number,
    write_numbers,
)
from glassformer.inspection.plots.from_trace import PART_NAMES, attention_in, check_index, map_of
from glassformer.inspection.plots.lettering import (
    cell_inches,
    label_inches,
    label_tokens,
    noted,
)
from glassformer.inspection.trace.schema import AttentionPart, Trace

__all__ = ["plot_masked_scores"]

_WRITTEN_IN = 14  # the most tokens whose numbers fit the squares
_HIDDEN = "#d3d8dd"


def plot_masked_scores(
    trace: Trace, *, part: AttentionPart = "decoder", layer: int = 0, head: int = 0
) -> Figure:
    r"""One head's scores before the mask, the scores after it, and their softmax.

    .. math:: \operatorname{softmax}(Q K^\top / \sqrt{d_k} + \text{mask})

    Only differences within a row matter to the softmax; the sign of a score means nothing.
    ``layer`` and ``head`` are indices, from 0; the title counts from 1.

    Raises:
        UsageError: a layer or head that the model does not have.
    """
    sublayer, attention = map_of(trace, part, layer), attention_in(trace, part)
    check_index("head", head, attention.weights.size(1))
    scores, weights = (
        torch.from_numpy(sublayer.scores.array())[head],
        attention.weights[layer, head],
    )
    hidden = ~_allowed(trace, part)
    kept, weights = (values.masked_fill(hidden, torch.nan) for values in (scores, weights))

    rows, columns = scores.shape
    cell = cell_inches(max(rows, columns), room=5.5, largest=0.36)
    figure = new_figure(
        3 * max(cell * columns, 1.9) + label_inches(attention.query_labels, cell) + 2.4,
        max(cell * rows, 1.2) + label_inches(attention.key_labels, cell) + 1.1,
    )
    panels = figure.subplots(1, 3)
    span = {"vmin": scores.min().item(), "vmax": scores.max().item()}
    images = [
        draw_matrix(axes, values, cmap=hiding(BLUES, _HIDDEN), **limits)
        for axes, values, limits in zip(
            panels, (scores, kept, weights), (span, span, {"vmin": 0.0}), strict=True
        )
    ]
    titles = ("1. score: q·k / √d_head", "2. score after the mask", "3. softmax: weight")
    for place, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        axes.set_title(title, fontsize=10)
        shown = () if place else attention.query_labels
        label_tokens(axes, rows=shown, columns=attention.key_labels, cell=cell)
    if max(rows, columns) <= _WRITTEN_IN:
        _write_in(panels[0], scores, span["vmin"], digits=1)
        _write_in(panels[1], kept, span["vmin"], digits=1)
        _write_in(panels[2], weights, 0.0, digits=2)
    panels[0].set_ylabel(attention.axes_labels[0])
    panels[1].set_xlabel(attention.axes_labels[1])
    figure.suptitle(f"{PART_NAMES[part]}: layer {layer + 1}, head {head + 1}", fontsize=11)
    draw_scale(figure, images[1], panels[:2], label="score")
    draw_scale(figure, images[2], panels[2], label="weight")
    return noted(figure)


def _allowed(trace: Trace, part: AttentionPart) -> Tensor:
    """(q_len, k_len) or (1, k_len): True = may attend."""
    if part == "decoder":
        return torch.tensor(trace.masks.target)
    return torch.tensor([trace.masks.source])


def _write_in(axes: Axes, values: Tensor, least: float, *, digits: int) -> None:
    texts = [
        ["" if math.isnan(value) else number(value, digits) for value in row]
        for row in values.tolist()
    ]
    most = values.nan_to_num(least).max().item()
    write_numbers(axes, texts, (values > least + 0.55 * (most - least)).tolist(), size=6.5)
