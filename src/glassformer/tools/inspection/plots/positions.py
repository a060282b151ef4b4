"""Positional encodings (section 3.5) as lines and as a heatmap."""

from collections.abc import Sequence
from typing import Unpack

from glassformer.config import Layout
from glassformer.model.positions import TableOptions, sinusoidal_positions
from glassformer.support.errors import UsageError
from glassformer.tools.inspection.plots.canvas import (
    COLOURS,
    SIGNED,
    Figure,
    draw_scale,
    new_figure,
    tidy,
)

__all__ = ["plot_position_heatmap", "plot_position_lines"]


def plot_position_lines(
    length: int = 100,
    d_model: int = 20,
    *,
    columns: Sequence[int] | None = None,
    **table: Unpack[TableOptions],
) -> Figure:
    """Some columns of the table over the positions.

    ``columns=None`` means sine and cosine of two rates, at a fifth and three tenths of the width.

    >>> [line.get_label() for line in plot_position_lines(columns=(4, 5)).axes[0].lines]
    ['column 4', 'column 5']
    """
    lines = sinusoidal_positions(length, d_model, **table).numpy().T
    figure = new_figure(9.0, 4.2)
    axes = figure.subplots()
    axes.set_prop_cycle(color=COLOURS)
    for column in _default_columns(d_model, table.get("layout")) if columns is None else columns:
        if not 0 <= column < d_model:
            raise UsageError(f"column {column}: the table has columns 0 to {d_model - 1}")
        axes.plot(lines[column], label=f"column {column}", linewidth=1.8)
    title = _title(f"d_model {d_model}", table)
    tidy(axes, title, x="token's place in the sentence", y="value")
    axes.set_ylim(-1.08, 1.08)
    axes.margins(x=0.01)
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def _title(size: str, table: TableOptions) -> str:
    options = [f"{name} {value}" for name, value in table.items()]
    return ", ".join(["Positional encoding", size, *options])


def _default_columns(d_model: int, layout: Layout | None) -> list[int]:
    """Columns whose waves are neither zigzags nor straight lines."""
    half = d_model // 2
    waves = dict.fromkeys((d_model // 10, 3 * d_model // 20))
    if layout == "halves":
        return [column for wave in waves for column in (wave, half + wave)]
    return [column for wave in waves for column in (2 * wave, 2 * wave + 1)]


def plot_position_heatmap(
    length: int = 100, d_model: int = 128, **table: Unpack[TableOptions]
) -> Figure:
    """The whole table, with fast waves in the first columns (of each half) and slow waves last.

    >>> plot_position_heatmap(50, 32).axes[0].get_ylabel()
    'position'
    """
    offset, values = table.get("offset", 0), sinusoidal_positions(length, d_model, **table).numpy()
    figure = new_figure(9.0, 5.2)
    axes = figure.subplots()
    edges = (-0.5, d_model - 0.5, offset + length - 0.5, offset - 0.5)
    image = axes.imshow(values, cmap=SIGNED, vmin=-1, vmax=1, aspect="auto", extent=edges)
    axes.set_title(_title(f"{length} positions", table), loc="left", fontsize=11)
    axes.set_xlabel(f"column of d_model {d_model}")
    axes.set_ylabel("position")
    draw_scale(figure, image, axes, label="value")
    return figure
