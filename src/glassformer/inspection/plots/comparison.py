"""Two or more translators in one picture: their losses, and their attention for one pair."""

import math
from collections.abc import Mapping, Sequence

import torch

from glassformer.errors import InputError
from glassformer.inspection.attention_of import Attention
from glassformer.inspection.plots.attention import plot_attention_grid
from glassformer.inspection.plots.canvas import COLOURS, Figure, new_figure, thousands, tidy
from glassformer.inspection.plots.training_curves import Record

__all__ = ["plot_attentions", "plot_losses"]


def plot_losses(runs: Mapping[str, Sequence[Record]]) -> Figure:
    """The cross-entropy of each run over its updates: training as lines, validation as dots.

    >>> record = {"kind": "update", "update": 50, "perplexity": 9.0}
    >>> figure = plot_losses({"a": [record], "b": [record | {"perplexity": 7.0}]})
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['a', 'b']
    """
    figure = new_figure(8.0, 4.0)
    axes = figure.subplots()
    for place, (name, records) in enumerate(runs.items()):
        colour = COLOURS[place % len(COLOURS)]
        for kind, style in (("update", "-"), ("validation", "o")):
            points = [each for each in records if each["kind"] == kind]
            axes.plot(
                [each["update"] for each in points],
                [math.log(each["perplexity"]) for each in points],
                style,
                color=colour,
                markersize=4,
                label=name if kind == "update" else None,
            )
    tidy(axes, "Loss: training, and validation as dots", x="updates", y="loss (nats a token)")
    thousands(axes)
    axes.set_yscale("log")
    axes.legend(frameon=False)
    return figure


def plot_attentions(attentions: Mapping[str, Attention], *, title: str) -> Figure:
    """A row for each translator and a column for each layer: the mean of the heads.

    InputError if the translators cut the pair into other subwords.
    """
    first = next(iter(attentions.values()))
    for name, attention in attentions.items():
        words = (attention.query_labels, attention.key_labels)
        if words != (first.query_labels, first.key_labels) or len(attention.weights) != len(
            first.weights
        ):
            raise InputError(f"{name}: other subwords or layers than {next(iter(attentions))}")
    return plot_attention_grid(
        torch.stack([attention.weights.mean(dim=1) for attention in attentions.values()]),
        first.query_labels,
        first.key_labels,
        title=title,
        axes_labels=first.axes_labels,
        names=[
            [f"{name}\nlayer {layer + 1}" for layer in range(len(first.weights))]
            for name in attentions
        ],
    )
