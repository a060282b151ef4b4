"""Erased words: the loss of each target piece without each source word."""

import torch

from glassformer.errors import UsageError
from glassformer.inspection.plots.canvas import (
    SIGNED,
    Figure,
    draw_matrix,
    draw_scale,
    new_figure,
    number,
    write_numbers,
)
from glassformer.inspection.plots.lettering import (
    cell_inches,
    label_inches,
    label_tokens,
    noted,
)
from glassformer.inspection.trace.schema import Trace
from glassformer.inspection.trace.subwords import labels

__all__ = ["plot_erased"]

_WRITTEN_IN = 14  # the most words and pieces whose numbers fit the squares


def plot_erased(trace: Trace) -> Figure:
    """The log-probability that each target piece loses without each source word.

    Blue: the piece needs the word. Red: the piece is more probable without it. At the right stands
    the sum of the row, for the whole translation.
    """
    erased = trace.erased
    if erased is None or not erased.words:
        raise UsageError("this trace has no erased words: make it again")
    lost = -torch.tensor(erased.changes)
    columns = labels(trace.target.pieces)
    cell = cell_inches(max(lost.shape), room=11.0)
    figure = new_figure(
        max(cell * lost.size(1) + label_inches(erased.words, cell) + 2.6, 5.6),
        max(cell * lost.size(0) + label_inches(columns, cell) + 1.3, 2.8),
    )
    axes = figure.subplots()
    most = max(lost.abs().max().item(), 1e-6)
    image = draw_matrix(axes, lost, cmap=SIGNED, vmin=-most, vmax=most)
    label_tokens(axes, rows=erased.words, columns=columns, cell=cell)
    if max(lost.shape) <= _WRITTEN_IN:
        texts = [[_number(value) for value in row] for row in lost.tolist()]
        write_numbers(axes, texts, (lost.abs() > 0.6 * most).tolist(), size=7.0)
    axes.set_ylabel("erased source word")
    axes.set_xlabel("target piece")
    sums = axes.secondary_yaxis("right")
    totals = [number(-total, 1) for total in erased.totals]
    sums.set_yticks(range(len(totals)), totals, fontsize=min(8.0, 72 * cell * 0.6))
    sums.tick_params(length=0)
    sums.set_ylabel("sum")
    sums.spines["right"].set_visible(False)
    figure.suptitle("Loss of each target piece without each source word", fontsize=11)
    draw_scale(figure, image, axes, label="lost log-probability (nats)")
    figure.axes[-1].set_ylim(
        min(lost.min().item(), 0.0), most
    )  # the scale shows only values that occur
    return noted(figure)


def _number(value: float) -> str:
    """The number, or nothing if it rounds to 0.0."""
    return number(value, 1) if abs(value) >= 0.05 else ""
