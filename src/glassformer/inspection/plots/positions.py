"""Positional encodings (section 3.5) as lines, heatmap, similarities, and sums."""

from collections.abc import Sequence
from typing import TypedDict, Unpack

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from glassformer.inspection.plots.canvas import (
    COLOURS,
    GREY,
    SIGNED,
    Axes,
    Figure,
    draw_matrix,
    draw_scale,
    new_figure,
    tidy,
)
from glassformer.inspection.plots.lettering import cell_inches, label_inches, label_tokens
from glassformer.model.positions import Frequencies, Layout, sinusoidal_positions

__all__ = [
    "Table",
    "plot_embedding_plus_position",
    "plot_position_heatmap",
    "plot_position_lines",
    "plot_position_similarity",
]


class Table(TypedDict, total=False):
    """The kind of a table of positions; by default the paper's."""

    layout: Layout
    frequencies: Frequencies
    offset: int


_PAPER: Table = {"layout": "interleaved", "frequencies": "paper", "offset": 0}


def plot_position_lines(
    length: int = 100,
    d_model: int = 20,
    *,
    columns: Sequence[int] | None = None,
    rows: Sequence[int] | None = None,
    **table: Unpack[Table],
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
    offset, unshifted = table["offset"], Table({**table, "offset": 0})
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
            raise ValueError(f"{name} {each}: the table has {name}s 0 to {most - 1}")
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


def _kind(table: Table) -> str:
    return f"{table['layout']}, {table['frequencies']} frequencies"


def _default_columns(d_model: int, layout: Layout) -> list[int]:
    """Columns whose waves are neither zigzags nor straight lines."""
    half = d_model // 2
    rates = dict.fromkeys((d_model // 10, 3 * d_model // 20))
    if layout == "halves":
        return [column for rate in rates for column in (rate, half + rate)]
    return [column for rate in rates for column in (2 * rate, 2 * rate + 1)]


def plot_position_heatmap(length: int = 100, d_model: int = 128, **table: Unpack[Table]) -> Figure:
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


def plot_position_similarity(
    position: int = 50,
    length: int = 100,
    d_model: int = 128,
    *,
    zoom: int = 8,
    **table: Unpack[Table],
) -> Figure:
    """Cosine similarity of one position with all others, and again of its neighbourhood.

    It falls with the distance, equally to both sides, and no two neighbours are equal. An offset
    changes nothing: the similarity depends on the distance alone.

    >>> len(plot_position_similarity(20, 50).axes)
    2
    """
    values = sinusoidal_positions(length, d_model, **table)
    similarity = F.cosine_similarity(values, values[position][None], dim=-1)
    first, last = max(0, position - zoom), min(length - 1, position + zoom)

    figure = new_figure(10.5, 4.2)
    whole, near = figure.subplots(1, 2, width_ratios=[3, 2])
    whole.axvspan(first - 0.5, last + 0.5, color="#deebf7")
    title = f"Similarity of position {position} with all others, d_model {d_model}"
    _draw_similarity(whole, similarity, range(length), position, title=title)
    title = f"Its neighbours, {first} to {last}"
    _draw_similarity(near, similarity, range(first, last + 1), position, title=title)
    near.xaxis.get_major_locator().set_params(integer=True)
    return figure


def _draw_similarity(
    axes: Axes, similarity: Tensor, places: range, position: int, *, title: str
) -> None:
    marker = "o" if len(places) <= 31 else ""
    axes.plot(places, similarity[[*places]].numpy(), color=COLOURS[0], marker=marker, markersize=4)
    axes.plot(position, 1.0, "o", color=COLOURS[1], markersize=7)
    axes.margins(x=0.02, y=0.06)
    tidy(axes, title, x="position", y="cosine similarity")


def plot_embedding_plus_position(
    embedded: Float[Tensor, "len d_model"],
    positions: Float[Tensor, "len d_model"],
    *,
    labels: Sequence[str] = (),
) -> Figure:
    """The input of the first block: each token's embedding, its position, and their sum.

    ``embedded`` is scaled, as the model adds it.

    >>> figure = plot_embedding_plus_position(torch.randn(3, 16), sinusoidal_positions(3, 16))
    >>> [axes.get_title() for axes in figure.axes[:3]]
    ['embedding', '+ position', '= their sum']
    """
    length, d_model = embedded.shape
    labels = labels or [str(place) for place in range(length)]
    cell = cell_inches(length, room=8.0, largest=0.3)
    figure = new_figure(11.5 + label_inches(labels, cell), max(2.4, cell * length + 1.2))
    panels = figure.subplots(1, 3, sharey=True)
    parts = (embedded, positions, embedded + positions)
    largest = max(part.abs().max().item() for part in parts)
    titles = ("embedding", "+ position", "= their sum")
    for axes, part, title in zip(panels, parts, titles, strict=True):
        image = draw_matrix(axes, part, cmap=SIGNED, vmin=-largest, vmax=largest, aspect="auto")
        axes.grid(False, which="minor")
        axes.set_title(title, fontsize=11)
        axes.set_xlabel(f"column of d_model {d_model}")
    ticks = torch.linspace(0, d_model - 1, 3).int().tolist()
    label_tokens(panels[0], rows=labels, cell=cell)
    for axes in panels:
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
    panels[0].set_ylabel("token")
    draw_scale(figure, image, panels, label="value")
    return figure
