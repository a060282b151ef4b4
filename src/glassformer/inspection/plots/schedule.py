"""The learning rate (section 5.3) and label smoothing (section 5.4) of training."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from glassformer.inspection.plots.canvas import (
    COLOURS,
    Axes,
    Figure,
    draw_matrix,
    new_figure,
    thousands,
    tidy,
    write_numbers,
)
from glassformer.training.loss import label_smoothed_cross_entropy
from glassformer.training.schedule import noam_schedule

__all__ = ["plot_label_smoothing", "plot_schedule"]


def plot_schedule(
    settings: Sequence[tuple[int, int]] = ((512, 4000), (512, 8000), (256, 4000)),
    *,
    updates: int = 20_000,
) -> Figure:
    """Equation 3 for pairs of d_model and warm-up: a linear rise, then 1 / sqrt(update).

    >>> [line.get_label() for line in plot_schedule([(512, 4000)]).axes[0].lines]
    ['d_model 512, warm-up 4,000']
    """
    figure = new_figure(8.0, 4.2)
    axes = figure.subplots()
    places = np.unique(np.linspace(1, updates, 1000).astype(int))
    for index, (d_model, warmup) in enumerate(settings):
        rates = [noam_schedule(int(at), d_model=d_model, warmup=warmup) for at in places]
        label = f"d_model {d_model:,}, warm-up {warmup:,}"
        axes.plot(places, rates, color=COLOURS[index % len(COLOURS)], label=label, linewidth=1.8)
    title = "Learning rate: rises during the warm-up, then falls with the square root"
    tidy(axes, title, x="update", y="learning rate")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    thousands(axes)
    axes.legend(frameon=False)
    return figure


def plot_label_smoothing(
    labels: Sequence[int] = (2, 1, 0, 3, 3),
    *,
    vocab_size: int = 5,
    smoothing: float = 0.1,
    pad_id: int = 0,
) -> Figure:
    """Left the target distribution of each label, right the loss against confidence.

    With smoothing the loss is lowest below certainty: a probability of the label above
    ``1 - smoothing + smoothing / vocab`` costs more again. A row of padding has no target.

    >>> figure = plot_label_smoothing()
    >>> [axes.get_xlabel() for axes in figure.axes[:2]]
    ['vocabulary', 'probability of the label']
    """
    figure = new_figure(10.5, 4.2)
    left, right = figure.subplots(1, 2)
    _draw_targets(left, labels, (vocab_size, pad_id), smoothing)
    _draw_confidence(right, vocab_size, smoothing)
    return figure


def _draw_targets(
    axes: Axes, labels: Sequence[int], vocabulary: tuple[int, int], smoothing: float
) -> None:
    vocab_size, pad_id = vocabulary
    wanted = torch.full((len(labels), vocab_size), smoothing / vocab_size)
    wanted[range(len(labels)), list(labels)] += 1 - smoothing
    wanted[torch.tensor(labels) == pad_id] = 0.0
    draw_matrix(axes, wanted, vmin=0, vmax=1)
    if vocab_size <= 8 and len(labels) <= 12:
        write_numbers(axes, wanted, 2, most=1.0, size=10.0)
    rows = [f"{label} (padding)" if label == pad_id else str(label) for label in labels]
    axes.set_yticks(range(len(labels)), rows)
    if vocab_size <= 20:
        axes.set_xticks(range(vocab_size))
    axes.set_title(f"Target distribution, smoothing {smoothing:g}", loc="left", fontsize=11)
    axes.set_xlabel("vocabulary")
    axes.set_ylabel("label")


def _draw_confidence(axes: Axes, vocab_size: int, smoothing: float) -> None:
    confidence = torch.linspace(0.02, 0.998, 490)  # in steps of 0.002
    rest = ((1 - confidence) / (vocab_size - 1)).expand(vocab_size - 1, -1)
    # Logits that are log-probabilities: their softmax is the distribution itself.
    logits = torch.cat([confidence[None], rest]).log().T
    for place, share in enumerate(dict.fromkeys((smoothing, 0.0))):
        losses = _losses(logits, share)
        label = f"smoothing {share:g}"
        axes.plot(confidence.numpy(), losses.numpy(), color=COLOURS[place], label=label)
        if share:
            best = int(losses.argmin())
            at = (confidence[best].item(), losses[best].item())
            axes.plot(*at, "o", color=COLOURS[place], markersize=7)
            axes.annotate(
                f"best at {at[0]:.2f}",
                at,
                xytext=(-4, 12),
                textcoords="offset points",
                ha="right",
                color=COLOURS[place],
            )
    tidy(axes, "Loss against confidence", x="probability of the label", y="loss (nats)")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _losses(logits: Tensor, smoothing: float) -> Tensor:
    """The loss of each row, as training computes it, for the label 0."""
    label = torch.tensor([0])
    return torch.stack(
        [
            label_smoothed_cross_entropy(row, label, smoothing=smoothing, pad_id=-1)
            for row in logits[:, None]
        ]
    )
