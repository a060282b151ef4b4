"""The learning rate of training (section 5.3)."""

from collections.abc import Sequence

import numpy as np

from glassformer.tools.inspection.plots.canvas import COLOURS, Figure, new_figure, thousands, tidy
from glassformer.training.schedule import noam_schedule

__all__ = ["plot_schedule"]


def plot_schedule(
    settings: Sequence[tuple[int, int]] = ((512, 4000), (512, 8000), (256, 4000)),
    *,
    updates: int = 20_000,
) -> Figure:
    """Equation 3, a linear rise and then 1 / sqrt(update), for pairs of d_model and warm-up.

    >>> [line.get_label() for line in plot_schedule([(512, 4000)]).axes[0].lines]
    ['d_model 512, warm-up 4,000']
    """
    figure = new_figure(8.0, 4.2)
    axes = figure.subplots()
    places = np.unique(np.linspace(1, updates, 1000).astype(int))
    axes.set_prop_cycle(color=COLOURS)
    for d_model, warmup in settings:
        rates = [noam_schedule(int(at), d_model=d_model, warmup=warmup) for at in places]
        label = f"d_model {d_model:,}, warm-up {warmup:,}"
        axes.plot(places, rates, label=label, linewidth=1.8)
    title = "Learning rate: rises during the warm-up, then falls with the square root"
    tidy(axes, title, x="update", y="learning rate")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    thousands(axes)
    axes.legend(frameon=False)
    return figure
