"""What the pictures share: figures, labels, the drawing of a matrix, and saving.

The figures are matplotlib's own and belong to no window: ``figure.savefig`` or :func:`save` writes
one. Blue is much, white is nothing, and red is below zero, in every picture.
"""

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor

from glassformer.bundle import write_atomically
from glassformer.errors import InputError, UsageError, missing_extra

try:
    import matplotlib
    from matplotlib import font_manager
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.patches import Patch
except ModuleNotFoundError:
    raise missing_extra("matplotlib", "plot") from None

__all__ = [
    "BLUES",
    "COLOURS",
    "GREY",
    "INK",
    "SIGNED",
    "Axes",
    "Figure",
    "ListedColormap",
    "Patch",
    "cell_inches",
    "draw_matrix",
    "draw_scale",
    "label_inches",
    "label_tokens",
    "new_figure",
    "picture_suffix",
    "readable",
    "save",
    "thousands",
    "tidy",
]

BLUES = "Blues"  # from nothing (white) to much
SIGNED = "RdBu"  # from -1 (red) over 0 (white) to 1 (blue)
COLOURS = ("#08519c", "#e6862e", "#2a9d60", "#b5364a", "#7a55b3", "#5c6670")
GREY = "#5c6670"
INK = "#1b2733"

SUFFIXES = (".png", ".svg")
LONGEST_LABEL = 18  # characters; a longer one is cut

# Fonts for scripts that matplotlib's own lacks, tried in this order where they are installed.
_FALLBACKS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Arial Unicode MS",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, which places its parts without overlap."""
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: Path) -> None:
    """Write the figure as PNG or SVG, told by the name; the same figure gives the same bytes."""
    suffix = picture_suffix(path)
    figure.draw_without_rendering()  # places once, so that saving places with the true sizes
    written = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "glassformer"}):
        metadata = {"Date": None} if suffix == ".svg" else None
        figure.savefig(written, format=suffix[1:], dpi=150, metadata=metadata)
    try:
        write_atomically(path, written.getvalue())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def picture_suffix(path: Path) -> str:
    """``.png`` or ``.svg``; an error for a name that ends otherwise.

    >>> picture_suffix(Path("masks.SVG"))
    '.svg'
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{path}: a picture's name ends in {' or '.join(SUFFIXES)},"
            f" this one in {repr(path.suffix) if suffix else 'neither'}"
        )
    return suffix


def tidy(axes: Axes, title: str, *, x: str, y: str) -> None:
    """Title and axis labels, a quiet grid, and no box around the picture."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, color="#e4e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def thousands(axes: Axes) -> None:
    """Numbers along x as in 20,000."""
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")


def draw_matrix(axes: Axes, values: Tensor, **options: Any) -> AxesImage:
    """Row 0 on top, one square a number, thin lines between few squares.

    ``options`` are those of ``Axes.imshow``, such as ``vmin`` and ``cmap``.
    """
    rows, columns = values.shape
    image = axes.imshow(
        values.detach().cpu().float().numpy(),
        **({"cmap": BLUES, "aspect": "equal", "interpolation": "nearest"} | options),
    )
    axes.tick_params(length=0)
    axes.spines[:].set_color("#c3c9cf")
    if max(rows, columns) <= 60:
        axes.set_xticks([column - 0.5 for column in range(1, columns)], minor=True)
        axes.set_yticks([row - 0.5 for row in range(1, rows)], minor=True)
        axes.grid(True, which="minor", color="white", linewidth=0.8)
        axes.tick_params(which="minor", length=0)
    return image


def draw_scale(figure: Figure, image: AxesImage, axes: Any, *, label: str) -> None:
    """The colour bar of ``axes``, one or many: as slim and never longer than it needs to be."""
    height = figure.get_figheight() - 1.2
    length = min(0.9 * height, 3.5)
    shrink = length / height
    figure.colorbar(image, ax=axes, label=label, shrink=shrink, aspect=length / 0.14, pad=0.015)


def label_tokens(
    axes: Axes, *, rows: Sequence[str] = (), columns: Sequence[str] = (), cell: float
) -> None:
    """Write tokens at the rows and columns of a matrix whose squares are ``cell`` inches wide.

    The letters fit the squares; where even the smallest would not, every other (third, …) token
    is written. No labels: no ticks.
    """
    size = _points(cell)
    step = 1 + int(size / (72 * cell * 0.95))
    style: dict[str, Any] = {"fontsize": size, "fontfamily": _families(), "parse_math": False}
    shown = [readable(label) for label in columns]
    flat = all(len(label) * size * 0.62 < 72 * cell for label in shown)
    axes.set_xticks(range(0, len(shown), step), shown[::step], **style)
    axes.tick_params(axis="x", rotation=0 if flat else 90)
    axes.set_yticks(range(0, len(rows), step), [readable(row) for row in rows[::step]], **style)


def cell_inches(count: int, *, room: float = 12.0, largest: float = 0.42) -> float:
    """The side of a square such that ``count`` of them fit into ``room`` inches, if they can.

    >>> cell_inches(5), cell_inches(48)
    (0.42, 0.25)
    """
    return min(largest, max(room / max(count, 1), 0.1), 2 * room / max(count, 1))


def label_inches(labels: Sequence[str], cell: float) -> float:
    """The room that the longest of the labels takes along its line."""
    longest = max((len(readable(label)) for label in labels), default=0)
    return longest * _points(cell) * 0.66 / 72


def readable(label: str) -> str:
    """A label that can be drawn: not too long, and □ for what no installed font can show.

    >>> readable("Donaudampfschifffahrtsgesellschaft")
    'Donaudampfschifff…'
    """
    if len(label) > LONGEST_LABEL:
        label = label[: LONGEST_LABEL - 1] + "…"
    return "".join(character if _drawable(character) else "□" for character in label)


def _points(cell: float) -> float:
    """Size of the letters beside squares of ``cell`` inches."""
    return min(10.0, max(4.5, 72 * cell * 0.62))


@cache
def _families() -> list[str]:
    """matplotlib's own font, and those of the fallbacks that are installed."""
    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in _FALLBACKS if name in installed)]


@cache
def _drawable(character: str) -> bool:
    if not character.isprintable():
        return False
    return any(
        font_manager.get_font(font_manager.findfont(family)).get_char_index(ord(character))
        for family in _families()
    )
