"""Attention maps of one sentence (section 3.2; the paper's figures 3 to 5)."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.support.errors import InputError
from glassformer.tools.inspection.attention_of import PART_NAMES, Attention, check_index
from glassformer.tools.inspection.plots.canvas import (
    INK,
    Figure,
    draw_matrix,
    draw_scale,
    new_figure,
)
from glassformer.tools.inspection.plots.lettering import (
    cell_inches,
    label_inches,
    label_tokens,
    noted,
)

__all__ = [
    "plot_attention",
    "plot_attention_grid",
    "plot_attention_head",
    "plot_attentions",
]

_WRITTEN_IN = 14  # the greatest number of tokens for which numbers fit into the squares


def plot_attention(
    attention: Attention, *, layer: int | None = None, head: int | Literal["mean"] | None = None
) -> Figure:
    """The attention of one sentence.

    Without ``layer`` and ``head``, the picture shows each head of each layer. ``layer`` and
    ``head`` are indices from 0; the titles count from 1. ``head="mean"`` is the mean over the
    heads, and over the layers too if ``layer`` is None.

    Raises:
        UsageError: a layer or head that the model does not have.
    """
    weights, names = _select(attention.weights, layer, head)
    words = (attention.query_labels, attention.key_labels)
    title = PART_NAMES[attention.part]
    if weights.shape[:2] == (1, 1):
        title = f"{title}: {names[0][0]}"
        return plot_attention_head(
            weights[0, 0], *words, title=title, axes_labels=attention.axes_labels
        )
    return plot_attention_grid(
        weights, *words, title=title, axes_labels=attention.axes_labels, names=names
    )


def plot_attentions(attentions: Mapping[str, Attention], *, title: str) -> Figure:
    """The mean of the heads, with a row for each translator and a column for each layer.

    InputError if the translators cut the sentence pair into different subwords.
    """
    first = next(iter(attentions.values()))
    words = (first.query_labels, first.key_labels)
    layers = range(len(first.weights))
    for name, each in attentions.items():
        if (each.query_labels, each.key_labels, range(len(each.weights))) != (*words, layers):
            raise InputError(f"{name} has other subwords or layers than {next(iter(attentions))}")
    return plot_attention_grid(
        torch.stack([attention.weights.mean(dim=1) for attention in attentions.values()]),
        *words,
        title=title,
        axes_labels=first.axes_labels,
        names=[[f"{name}\nlayer {layer + 1}" for layer in layers] for name in attentions],
    )


def plot_attention_head(
    weights: Float[Tensor, "q_len k_len"],
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    title: str = "Attention",
    axes_labels: tuple[str, str] = ("query", "key"),
) -> Figure:
    """The weights of one head, with a row for each query and a column for each key.

    In short sentences the squares hold the weights in hundredths.

    >>> import torch
    >>> weights = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    >>> figure = plot_attention_head(weights, ["a", "dog"], ["ein", "Hund"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['90', '10', '20', '80']
    """
    figure = plot_attention_grid(
        weights[None, None],
        query_labels,
        key_labels,
        title=title,
        axes_labels=axes_labels,
        names=[[""]],
    )
    if max(weights.shape) <= _WRITTEN_IN:
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.5}
        for row, column in product(*map(range, weights.shape)):
            weight = weights[row, column].item()
            colour = "white" if weight > 0.55 * weights.max() else INK
            figure.axes[0].text(column, row, f"{100 * weight:.0f}", color=colour, **style)
    return figure


def plot_attention_grid(
    weights: Float[Tensor, "layers heads q_len k_len"],
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    title: str = "Attention",
    axes_labels: tuple[str, str] = ("query", "key"),
    names: Sequence[Sequence[str]] | None = None,
) -> Figure:
    """A panel for each layer and head, on one scale; ``names`` are the panels' titles.

    >>> import torch
    >>> weights = torch.rand(2, 3, 4, 5).softmax(dim=-1)
    >>> figure = plot_attention_grid(weights, list("abcd"), list("vwxyz"))
    >>> figure.axes[5].get_title()
    'layer 2, head 3'
    """
    rows, columns, q_len, k_len = weights.shape
    if (q_len, k_len) != (len(query_labels), len(key_labels)):
        raise ValueError(
            f"weights of {q_len} queries and {k_len} keys, but {len(query_labels)} query labels and"
            f" {len(key_labels)} key labels"
        )
    names = names or _names(rows, columns)
    longest = max(q_len, k_len)
    panel = min(max(0.15 * longest, 1.7), 5.0, 30 / max(rows, columns))
    cell = cell_inches(longest, room=11.0) if rows == columns == 1 else panel / longest
    figure = new_figure(
        max(5.2, columns * max(cell * k_len + 0.15, 1.3) + label_inches(query_labels, cell) + 1.9),
        rows * (cell * q_len + 0.4) + label_inches(key_labels, cell) + 1.0,
    )
    grid = figure.subplots(rows, columns, squeeze=False)
    largest = weights.max().item()
    for row in range(rows):
        for column in range(columns):
            axes = grid[row, column]
            image = draw_matrix(axes, weights[row, column], vmin=0, vmax=largest)
            axes.set_title(names[row][column], fontsize=9)
            label_tokens(
                axes,
                rows=() if column else query_labels,
                columns=key_labels if row == rows - 1 else (),
                cell=cell,
            )
    figure.suptitle(title, fontsize=12)
    figure.supylabel(axes_labels[0], fontsize=10)
    figure.supxlabel(axes_labels[1], fontsize=10)
    draw_scale(figure, image, grid, label="weight")
    return noted(figure)


def _select(
    weights: Tensor, layer: int | None, head: int | Literal["mean"] | None
) -> tuple[Tensor, list[list[str]]]:
    """The chosen layers and heads, ``(layers, heads, …)``, and their titles."""
    layers, heads = weights.shape[:2]
    check_index("layer", layer, layers)
    kept_layers = slice(layer, layer + 1) if layer is not None else slice(None)
    if head == "mean":
        every = "mean over all layers and heads"
        name = every if layer is None else f"layer {layer + 1}, mean of heads"
        return weights[kept_layers].mean(dim=(0, 1), keepdim=True), [[name]]
    check_index("head", head, heads)
    kept_heads = slice(head, head + 1) if head is not None else slice(None)
    names = [row[kept_heads] for row in _names(layers, heads)[kept_layers]]
    return weights[kept_layers, kept_heads], names


def _names(layers: int, heads: int) -> list[list[str]]:
    """The panels' titles, which count from 1, as ``glassformer plot`` does."""
    return [
        [f"layer {layer + 1}, head {head + 1}" for head in range(heads)] for layer in range(layers)
    ]
