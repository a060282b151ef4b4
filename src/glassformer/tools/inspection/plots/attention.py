"""Attention maps of one sentence under a translator (the paper's figures 3 to 5)."""

from typing import Literal

from glassformer.tools.inspection.attention_of import (
    AXES_LABELS,
    PART_NAMES,
    Attention,
    check_index,
)
from glassformer.tools.inspection.plots.canvas import Figure
from glassformer.tools.inspection.plots.tensors import plot_attention

__all__ = ["plot_attention_of"]


def plot_attention_of(
    attention: Attention, *, layer: int | None = None, head: int | Literal["mean"] | None = None
) -> Figure:
    """The attention of one sentence, in each head of each layer, or in a part of them.

    ``layer`` and ``head`` are indices from 0; the titles count from 1. ``head="mean"`` is the mean
    over the heads, and over the layers too if ``layer`` is None.

    Raises:
        UsageError: a layer or head that the model does not have.
    """
    weights = attention.weights
    rows, columns = (
        [f"{noun} {place + 1}" for place in range(size)]
        for noun, size in zip(("layer", "head"), weights.shape, strict=False)
    )
    check_index("layer", layer, len(rows))
    if layer is not None:
        weights, rows = weights[[layer]], [rows[layer]]
    if head == "mean":
        weights = weights.mean(dim=(0, 1), keepdim=True)
        columns = ["mean over all layers and heads" if layer is None else "mean of heads"]
        rows = [""] if layer is None else rows
    elif head is not None:
        check_index("head", head, len(columns))
        weights, columns = weights[:, [head]], [columns[head]]
    words = (attention.query_labels, attention.key_labels)
    title = PART_NAMES[attention.part]
    figure = plot_attention(weights, *words, rows=rows, columns=columns, title=title)
    queries, keys = AXES_LABELS[attention.part]
    figure.supylabel(queries)
    figure.supxlabel(keys)
    return figure
