"""Pictures of tensors: masks, attention (section 3.2), positions (3.5) and similarities.

Each takes a tensor, an array or nested lists; labels are tokens or ids.
"""

from collections.abc import Sequence
from itertools import product
from math import ceil, inf
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from glassformer.config import Layout
from glassformer.model.masks import padding_mask, target_mask
from glassformer.support.errors import UsageError, check_kind
from glassformer.tools.inspection.attention_of import PART_NAMES
from glassformer.tools.inspection.plots.canvas import (
    COLOURS,
    GREY,
    SIGNED,
    Figure,
    ListedColormap,
    Patch,
    common_scale,
    draw_matrix,
    draw_scale,
    new_figure,
    tidy,
    write_numbers,
)
from glassformer.tools.inspection.plots.lettering import (
    Ticks,
    cell_inches,
    drawable,
    label_inches,
    label_tokens,
    noted,
)
from glassformer.tools.inspection.trace.schema import AttentionPart

__all__ = [
    "PAD",
    "plot_attention",
    "plot_mask",
    "plot_positions",
    "plot_similarity",
    "wave_columns",
]

Values: TypeAlias = Tensor | Sequence[Any]
"""A tensor, an array, nested lists of numbers, or a list of tensors of one shape."""
Labels: TypeAlias = Tensor | Sequence[Any] | None
"""The tokens or ids of one sentence, or of each; a range of numbers, by default from 0."""

PAD = "<pad>"
_HIDDEN, _SEEN = "#e3e6ea", "#08519c"
_MOST_MAPS, _IN_A_ROW, _MOST_VECTORS = 600, 8, 5_000
_WRITTEN_IN = 14  # the greatest number of tokens for which numbers fit into the squares
_LETTER = 0.085  # inches of a title's letter


def plot_mask(
    mask: Values | None = None,
    queries: Labels = None,
    keys: Labels = None,
    *,
    source: Sequence[str] = (),
    target: Sequence[str] = (),
    title: str = "",
) -> Figure:
    """Any mask, the masks of a batch, or the model's masks for a source, a target, or a pair.

    Row ``i`` shows the keys that query ``i`` may attend to. A mask is boolean, True = may attend:
    ``(q_len, k_len)``, or ``(batch, heads, q_len, k_len)`` with a size of 1 for any. ``source`` has
    the tokens that the encoder reads, ``target`` the tokens that the decoder reads, with the start
    symbol; ``<pad>`` is padding.

    >>> from glassformer import padding_mask
    >>> ids = torch.tensor([[5, 6, 7], [8, 9, 0]])
    >>> [axes.get_title() for axes in plot_mask(padding_mask(ids, 0), ids).axes]
    ['sentence 1', 'sentence 2']
    >>> len(plot_mask(source=["A", "dog", "</s>"], target=["<s>", "Ein", "Hund"]).axes)
    3
    """
    colours = {"cmap": ListedColormap([_HIDDEN, _SEEN]), "vmin": 0, "vmax": 1}
    if mask is None:
        if queries is not None or keys is not None:
            raise ValueError("plot_mask: queries and keys are labels of a mask: give the mask too")
        figure = _draw([_masks(source, target)], title, style=colours)
    else:
        if source or target:
            raise ValueError("plot_mask: source and target have masks of their own: give no mask")
        shapes = ("q_len k_len", "batch q_len k_len", "batch heads q_len k_len")
        tensor = _tensor("plot_mask", mask, *shapes)
        if tensor.dtype != torch.bool:
            raise TypeError(
                f"plot_mask: a mask is boolean, True = may attend, got {tensor.dtype}: compare the"
                " numbers, as mask == 1"
            )
        tensor = tensor[None] if tensor.dim() == 2 else tensor
        tensor = tensor[:, None] if tensor.dim() == 3 else tensor
        grid = _grid("plot_mask", tensor, (queries, keys), ("sentence", "head"))
        figure = _draw(grid, title, style=colours)
    legend = [
        Patch(facecolor=_SEEN, label="may attend"),
        Patch(facecolor=_HIDDEN, label="masked"),
    ]
    figure.legend(handles=legend, loc="outside right center", frameon=False)
    return figure


def plot_attention(
    weights: Values,
    queries: Labels = None,
    keys: Labels = None,
    *,
    rows: str | Sequence[str] = "sentence",
    columns: str | Sequence[str] = "head",
    title: str = "Attention",
) -> Figure:
    """A panel for each map of attention weights, or of scores before the softmax, on one scale.

    The axes are ``(q_len, k_len)``, ``(heads, q_len, k_len)``, or ``(batch, heads, q_len, k_len)``.
    A list of layers, each ``(1, heads, q_len, k_len)``, is the ``attentions`` of transformers.
    ``rows`` and ``columns`` name the panels: ``rows="layer"`` if the first axis counts layers, or a
    list of names. The keys of a square map are the queries by default. In a single small map the
    squares hold the weights in hundredths.

    >>> weights = torch.rand(2, 3, 4, 5).softmax(dim=-1)
    >>> figure = plot_attention(weights, list("abcd"), list("vwxyz"), rows="layer")
    >>> figure.axes[5].get_title()
    'layer 2, head 3'
    """
    shapes = ("q_len k_len", "heads q_len k_len", "batch heads q_len k_len")
    listed = weights if isinstance(weights, list | tuple) else ()
    if {getattr(each, "shape", ())[:-3] for each in listed} == {(1,)}:
        weights, rows = [layer[0] for layer in weights], "layer" if rows == "sentence" else rows
    tensor = _tensor("plot_attention", weights, *shapes)
    if tensor.dtype == torch.bool:
        raise TypeError("plot_attention: expected weights, got a mask: draw it with plot_mask")
    tensor = tensor[(None,) * (4 - tensor.dim())]
    grid = _grid("plot_attention", tensor, (queries, keys), (rows, columns))
    return _draw(grid, title, scale="weight")


def plot_positions(
    table: Values,
    embedded: Values | None = None,
    labels: Labels = None,
    *,
    columns: Sequence[int] | None = None,
    rows: Sequence[int] | None = None,
    apart: float = 0.0,
) -> Figure:
    """A table of positions ``(length, d_model)`` as a heat map, or columns or rows of it as curves.

    With ``embedded``, ``(length, d_model)`` or a batch of them, three heat maps show the
    embeddings, the positions, and the sums. ``labels`` are tokens or ids, or the range of the
    positions. ``columns`` are drawn over the positions; ``rows`` are the vectors of positions.
    ``apart`` is the distance from one curve to the next.

    >>> from glassformer import sinusoidal_positions
    >>> table = sinusoidal_positions(30, 16)
    >>> [line.get_label() for line in plot_positions(table, columns=(4, 5)).axes[0].lines]
    ['column 4', 'column 5']
    >>> [axes.get_title() for axes in plot_positions(table, torch.zeros(30, 16)).axes[:3]]
    ['embedding', 'position', 'sum']
    """
    tensor = _tensor("plot_positions", table, "length d_model").float()
    length, d_model = tensor.shape
    forms = {"embedded": embedded, "columns": columns, "rows": rows}
    given = [name for name, value in forms.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"plot_positions: {' and '.join(given)}: give one of them")
    curves = given in (["columns"], ["rows"])
    if not (apart == 0 or (curves and 0 < apart < inf)):
        raise UsageError("plot_positions: apart is a distance of curves: give columns or rows too")
    if curves and labels is not None and not (columns is not None and isinstance(labels, range)):
        raise UsageError("plot_positions: curves have no labels, and columns only a range of them")
    if columns is not None:
        points = labels if isinstance(labels, range) else range(length)
        figure = _curves(tensor.T, columns, "column", points, apart)
    elif rows is not None:
        figure = _curves(tensor, rows, "position", range(d_model), apart)
    else:
        maps, names = tensor[None, None], [""]
        if embedded is not None:
            shapes = ("length d_model", "batch length d_model")
            vectors = _tensor("plot_positions", embedded, *shapes).float()
            vectors = vectors if vectors.dim() == 3 else vectors[None]
            if vectors.size(1) > length or vectors.size(2) != d_model:
                raise ValueError(
                    f"plot_positions: embeddings {tuple(vectors.shape)} and positions ({length},"
                    f" {d_model}): expected one width, and a position for each token"
                )
            places = tensor[: vectors.size(1)].expand_as(vectors)
            maps = torch.stack((vectors, places, vectors + places), dim=1)
            names = ["embedding", "position", "sum"]
        grid = _grid("plot_positions", maps, (labels, range(d_model)), ("sentence", names))
        cells = (7.5 / d_model / len(names) ** 0.5, min(0.25, 4.2 / maps.size(2)))
        figure = _draw(grid, "", axes_labels=("position", "column"), scale="value", cells=cells)
    figure.suptitle(f"Positional encoding: {length} positions, d_model {d_model}")
    return figure


def _curves(
    values: Tensor, chosen: Sequence[int], noun: str, points: range, apart: float
) -> Figure:
    """The chosen rows of the values, each below the one before if they are ``apart``."""
    figure = new_figure(9.0, max(4.2, 1.0 + 0.26 * len(chosen)))
    axes = figure.subplots()
    axes.set_prop_cycle(color=COLOURS)
    for place, index in enumerate(chosen):
        if not 0 <= index < len(values):
            most = len(values) - 1
            raise UsageError(f"{noun} {index}: plot_positions has a table of {noun}s 0 to {most}")
        line = values[index] - place * apart
        axes.plot(points, line, label=f"{noun} {index}", linewidth=1.8)
    tidy(axes, "", x="position" if noun == "column" else "column", y="" if apart else "value")
    axes.margins(x=0.01)
    if apart:
        names = [str(line.get_label()) for line in axes.lines]
        axes.set_yticks([-place * apart for place in range(len(chosen))], names)
    else:
        figure.legend(loc="outside right upper", frameon=False)
    return figure


def plot_similarity(
    vectors: Values,
    labels: Labels = None,
    *,
    to: int | None = None,
    zoom: range | None = None,
    title: str = "Cosine similarity",
) -> Figure:
    """The cosine of the angle between vectors ``(length, d_model)``: of each pair, or with one.

    A cosine of 1 means the same direction, 0 a right angle. ``to`` is the index of one vector, and
    the picture a curve. ``zoom`` is a range of indices: the only ones of the map, or those of a
    second panel beside the curve.

    >>> from glassformer import sinusoidal_positions
    >>> figure = plot_similarity(sinusoidal_positions(200, 64), to=100, zoom=range(80, 120))
    >>> len(figure.axes)
    2
    """
    tensor = F.normalize(_tensor("plot_similarity", vectors, "length d_model").float(), dim=-1)
    every = range(len(tensor))
    part = every if zoom is None else zoom
    names = (_tokens(labels) or [every])[0]
    check_kind(part, range, wants="plot_similarity takes zoom=range(first, end)")
    if not part or not {part[0], part[-1], to or 0} <= {*every} or len(part) > _MOST_VECTORS:
        raise ValueError(
            f"plot_similarity: to={to} and zoom={zoom} for {len(every):,} vectors: give indices"
            f" from 0 to {every[-1]}, and a zoom of at most {_MOST_VECTORS:,}"
        )
    if len(names) != len(every):
        raise ValueError(
            f"plot_similarity: {len(names)} labels for {len(every)} vectors: give one for each"
        )
    if to is None:
        cosines = tensor[[*part]] @ tensor[[*part]].T
        tokens = part if labels is None else [names[index] for index in part]
        grid = _grid("plot_similarity", cosines[None, None], (tokens, tokens), ("", ""))
        style = {"cmap": SIGNED, "vmin": -1, "vmax": 1}
        return _draw(grid, title, axes_labels=("vector", "vector"), scale="cosine", style=style)
    parts = [every] if zoom is None else [every, zoom]
    figure = new_figure(9.0, 0.6 + 2.4 * len(parts))
    for axes, shown in zip(figure.subplots(len(parts), squeeze=False)[:, 0], parts, strict=True):
        axes.plot(every, tensor @ tensor[to], color=COLOURS[0], linewidth=1.8)
        axes.axvspan(part[0], part[-1], color=GREY, alpha=0.1)
        tidy(axes, "", x="vector", y=f"cosine with {drawable(str(names[to]))}")
        axes.set_xlim(shown[0], shown[-1])
    figure.suptitle(title, fontsize=12, parse_math=False)
    return noted(figure)


class _Map(NamedTuple):
    """A matrix, its title, and the labels of its rows and of its columns."""

    values: Tensor
    title: str
    labels: tuple[Ticks, Ticks]


def _tensor(call: str, values: Values, *shapes: str) -> Tensor:
    """The values as a tensor; ValueError names ``call`` if no shape has as many axes."""
    wanted = " or ".join(f"({', '.join(shape.split())})" for shape in shapes)
    try:
        if isinstance(values, list | tuple) and values and isinstance(values[0], Tensor):
            values = torch.stack(list(values))
        tensor = torch.as_tensor(values).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:  # words, or rows of unequal lengths
        raise ValueError(f"{call}: expected a tensor {wanted}: {error}") from error
    if not tensor.numel() or tensor.dim() not in [len(shape.split()) for shape in shapes]:
        raise ValueError(
            f"{call}: expected a tensor {wanted}, got {tuple(tensor.shape)}: choose a part of a"
            " larger one, as tensor[0]"
        )
    return tensor


def _masks(source: Sequence[str], target: Sequence[str]) -> list[_Map]:
    """The masks of each attention whose tokens are given, computed by the model's code."""
    sides: dict[AttentionPart, tuple[Sequence[str], Sequence[str]]] = {
        "encoder": (source, source),
        "decoder": (target, target),
        "cross": (target, source),
    }
    maps = []
    for part, (queries, keys) in sides.items():
        if queries and keys:
            ids = torch.tensor([[int(token != PAD) for token in keys]])
            mask = target_mask(ids, 0) if part == "decoder" else padding_mask(ids, 0)
            values = mask[0, 0].expand(len(queries), len(keys))
            maps.append(_Map(values, PART_NAMES[part], (queries, keys)))
    if not maps:
        raise ValueError("plot_mask: expected a mask, or tokens: source=…, target=…, or both")
    return maps


def _grid(
    call: str,
    tensor: Tensor,
    labels: tuple[Labels, Labels],
    names: tuple[str | Sequence[str], str | Sequence[str]],
) -> list[list[_Map]]:
    """A row of maps for each sentence, of a tensor ``(sentences, heads, q_len, k_len)``.

    ``names`` are nouns or names for the titles of rows and columns. A mask's axis of size 1 fits
    any number of labels.
    """
    queries, keys = map(_tokens, labels)
    if tensor.dtype == torch.bool and queries:
        wanted = (len(queries), 1, len(queries[0]), len((keys or queries)[0]))
        sizes = zip(tensor.shape, wanted, strict=True)
        tensor = tensor.expand([other if size == 1 else size for size, other in sizes])
    sentences, heads, q_len, k_len = tensor.shape
    if (count := sentences * heads) > _MOST_MAPS:
        raise ValueError(
            f"{call}: {count:,} maps, expected at most {_MOST_MAPS}: choose some, as tensor[:4]"
        )
    queries = queries or [range(q_len)]
    keys = keys or (queries if len(queries[0]) == k_len else [range(k_len)])
    for axis, side, length in (("query", queries, q_len), ("key", keys, k_len)):
        if len(side) not in (1, sentences) or {length} != {len(tokens) for tokens in side}:
            raise ValueError(
                f"{call}: {len(side)} × {len(side[0])} {axis} labels for {sentences} × {length}:"
                " give a token or id for each, in one list, or in a list for each sentence"
            )
    rows, columns = map(_titles, names, (sentences, heads))
    if (len(rows), len(columns)) != (sentences, heads):
        raise ValueError(
            f"{call}: {len(rows)} × {len(columns)} names for {sentences} × {heads} maps: give one"
            " for each row and column"
        )
    maps = [
        _Map(
            tensor[row, head],
            ", ".join(filter(None, (rows[row], columns[head]))),
            (queries[row % len(queries)], keys[row % len(keys)]),
        )
        for row, head in product(range(sentences), range(heads))
    ]
    in_a_row = ceil(count / ceil(count / _IN_A_ROW)) if 1 in (sentences, heads) else heads
    return [maps[at : at + in_a_row] for at in range(0, count, in_a_row)]


def _titles(names: str | Sequence[str], size: int) -> Sequence[str]:
    """The names themselves, or a noun with a number for each of several."""
    if not isinstance(names, str):
        return names
    return [f"{names} {place + 1}" if size > 1 else "" for place in range(size)]


def _tokens(labels: Labels) -> Sequence[Ticks]:
    """The labels of each sentence; nothing if there are none."""
    if labels is None or len(labels) == 0:
        return []
    if isinstance(labels, range):
        return [labels]
    listed = [each.tolist() if hasattr(each, "tolist") else each for each in labels]
    rows = listed if isinstance(listed[0], list | tuple) else [listed]
    return [[str(token) for token in row] for row in rows]


def _draw(
    grid: Sequence[Sequence[_Map]],
    title: str,
    *,
    axes_labels: tuple[str, str] = ("query", "key"),
    scale: str = "",
    cells: tuple[float, float] | None = None,
    style: dict[str, Any] | None = None,
) -> Figure:
    """Draw a grid of maps on one scale; the last row may be shorter.

    ``scale`` is the word at the colour bar. ``cells`` are the inches of a number, which has a
    square by default. ``style`` goes to ``Axes.imshow`` in the place of the common scale.
    """
    panels = [panel for line in grid for panel in line]
    columns, alone = len(grid[0]), len(panels) == 1
    longest = max(max(panel.values.shape) for panel in panels)
    square = cell_inches(longest, room=11.0 if alone else min(7.0, 14.0 / columns))
    wide, high = cells or (square, square)
    style = style or common_scale([panel.values for panel in panels])
    labels = _own_labels(panels, columns)
    title = ": ".join(filter(None, (title, panels[0].title if alone else "")))
    widths = [max(wide * panel.values.size(1), _LETTER * len(panel.title)) for panel in grid[0]]
    heights = [high * max(len(panel.values) for panel in line) for line in grid]
    sides = sum(label_inches(own[0], high) + 0.4 for own in labels[:columns])
    feet = sum(label_inches(own[1], wide) + 0.35 for own in labels[::columns])
    figure = new_figure(
        max(sum(widths) + sides + 1.6, 4.6, _LETTER * len(title) + 0.8),
        max(sum(heights) + feet + 0.9, 2.4),
    )
    ratios: dict[str, Any] = {"width_ratios": widths, "height_ratios": heights}
    squares = figure.subplots(len(grid), columns, squeeze=False, **ratios)
    for axes, panel, own in zip(squares.flat, panels, labels, strict=False):
        image = draw_matrix(axes, panel.values, aspect="auto" if cells else "equal", **style)
        axes.set_title("" if alone else panel.title, fontsize=10, parse_math=False)
        axes.set_anchor("N")
        label_tokens(axes, *own, cells=(wide, high))
    for axes in squares.flat[len(panels) :]:
        axes.remove()
    if alone and scale and longest <= _WRITTEN_IN and image.get_clim()[1] <= 1:
        write_numbers(squares[0, 0], panels[0].values)
    figure.suptitle(title, parse_math=False)
    figure.supylabel(axes_labels[0], fontsize=10)
    figure.supxlabel(axes_labels[1], fontsize=10)
    if scale:
        draw_scale(figure, image, squares, label=scale)
    return noted(figure)


def _own_labels(panels: Sequence[_Map], columns: int) -> list[tuple[Ticks, Ticks]]:
    """The labels of each map that its neighbour to the left, or below, does not have."""
    labels = [panel.labels for panel in panels]
    return [
        (
            () if place % columns and labels[place - 1] == own else own[0],
            () if own in labels[place + columns :][:1] else own[1],
        )
        for place, own in enumerate(labels)
    ]


def wave_columns(d_model: int, layout: Layout) -> list[int]:
    """Sine and cosine of two rates, whose waves are neither zigzags nor straight lines."""
    half = d_model // 2
    waves = dict.fromkeys((d_model // 10, 3 * d_model // 20))
    if layout == "halves":
        return [column for wave in waves for column in (wave, half + wave)]
    return [column for wave in waves for column in (2 * wave, 2 * wave + 1)]
