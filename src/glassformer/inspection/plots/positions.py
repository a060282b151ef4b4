"""Positional encodings (section 3.5) as lines and as a heatmap."""

from collections.abc import Sequence
from typing import Unpack

from glassformer.config import Layout
from glassformer.errors import UsageError
from glassformer.inspection.plots.canvas import (
    COLOURS,
    GREY,
    SIGNED,
    Figure,
    draw_scale,
    new_figure,
    tidy,
)
from glassformer.model.positions import TableOptions, sinusoidal_positions

__all__ = ["plot_position_heatmap", "plot_position_lines"]

_PAPER: TableOptions = {"layout": "interleaved", "frequencies": "paper", "offset": 0}


def plot_position_lines(
    length: int = 100,
    d_model: int = 20,
    *,
    columns: Sequence[int] | None = None,
    rows: Sequence[int] | None = None,
    **table: Unpack[TableOptions],
) -> Figure:
    """Some columns of the table over the positions; or some ``rows``, the vectors of positions.

    ``columns=None``: sine and cosine of two rates, at a fifth and 3 tenths of the width. With an
    ``offset``, dashed lines show the table without it.

    >>> [line.get_label() for line in plot_position_lines(columns=(4, 5)).axes[0].lines]
    ['column 4', 'column 5']
    >>> [line.get_label() for line in plot_position_lines(rows=(0, 50)).axes[0].lines]
    ['position 0', 'position 50']
    """
    table = {**_PAPER, **table}
    offset, unshifted = table["offset"], TableOptions({**table, "offset": 0})
    lines, plain_lines = (
        sinusoidal_positions(length, d_model, **each).numpy() for each in (table, unshifted)
    )
    if rows is None:
        chosen = _default_columns(d_model, table["layout"]) if columns is None else columns
        name, most, x = "column", d_model, "token's place in the sentence"
        lines, plain_lines = lines.T, plain_lines.T
    else:
        chosen, name, most, x = rows, "position", length, f"column of d_model {d_model}"
    figure = new_figure(9.0, 4.2)
    axes = figure.subplots()
    for place, each in enumerate(chosen):
        if not 0 <= each < most:
            raise UsageError(f"{name} {each}: the table has {name}s 0 to {most - 1}")
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(lines[each], color=colour, label=f"{name} {each}", linewidth=1.8)
        if offset:
            axes.plot(plain_lines[each], "--", color=colour, lw=0.9, alpha=0.7, zorder=1)
    if offset:
        axes.plot([], [], "--", color=GREY, linewidth=0.9, label="offset 0")
    shift = f", offset {offset}" if offset else ""
    tidy(axes, f"Positional encoding, d_model {d_model}, {_kind(table)}{shift}", x=x, y="value")
    axes.set_ylim(-1.08, 1.08)
    axes.margins(x=0.01)
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def _kind(table: TableOptions) -> str:
    return f"{table['layout']}, {table['frequencies']} frequencies"


def _default_columns(d_model: int, layout: Layout) -> list[int]:
    """Columns whose waves are neither zigzags nor straight lines."""
    half = d_model // 2
    rates = dict.fromkeys((d_model // 10, 3 * d_model // 20))
    if layout == "halves":
        return [column for rate in rates for column in (rate, half + rate)]
    return [column for rate in rates for column in (2 * rate, 2 * rate + 1)]


def plot_position_heatmap(
    length: int = 100, d_model: int = 128, **table: Unpack[TableOptions]
) -> Figure:
    """The whole table: fast waves in the first columns (of each half), slow ones in the last.

    >>> plot_position_heatmap(50, 32).axes[0].get_ylabel()
    'position'
    """
    table = {**_PAPER, **table}
    offset, values = table["offset"], sinusoidal_positions(length, d_model, **table).numpy()
    figure = new_figure(9.0, 5.2)
    axes = figure.subplots()
    edges = (-0.5, d_model - 0.5, offset + length - 0.5, offset - 0.5)
    image = axes.imshow(values, cmap=SIGNED, vmin=-1, vmax=1, aspect="auto", extent=edges)
    title = f"Positional encoding, {length} positions, {_kind(table)}"
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(f"column of d_model {d_model}")
    axes.set_ylabel("position")
    draw_scale(figure, image, axes, label="value")
    return figure
