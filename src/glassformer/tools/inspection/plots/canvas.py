"""The canvas of all pictures: figures, colours, matrices, numbers, and saving.

The figures are matplotlib's. A notebook shows them, ``figure.show()`` opens them, and
``figure.savefig`` or :func:`save` writes a file.
In every picture blue is a large number, white is zero, and red is below zero.
"""

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from webbrowser import open as open_in_browser

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.support.displays import notebook
from glassformer.support.errors import UsageError, missing_extra
from glassformer.support.files import write_atomically

try:
    import matplotlib
    from matplotlib import colormaps, figure, font_manager
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.image import AxesImage
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.patches import Patch, Rectangle
    from matplotlib.text import Text
    from matplotlib.ticker import MaxNLocator
except ModuleNotFoundError:
    raise missing_extra("matplotlib", "plot") from None

__all__ = [
    "BLUES",
    "COLOURS",
    "GREY",
    "INK",
    "SIGNED",
    "Axes",
    "ConstrainedLayoutEngine",
    "Figure",
    "ListedColormap",
    "MaxNLocator",
    "Patch",
    "Rectangle",
    "Text",
    "colormaps",
    "common_scale",
    "draw_matrix",
    "draw_scale",
    "font_manager",
    "new_figure",
    "picture_suffix",
    "save",
    "sheet",
    "thousands",
    "tidy",
    "write_numbers",
]

BLUES = "Blues"  # from zero (white) to large
SIGNED = "RdBu"  # from -1 (red) over 0 (white) to 1 (blue)
COLOURS = ("#08519c", "#e6862e", "#2a9d60", "#b5364a", "#7a55b3", "#5c6670")
GREY, INK = "#5c6670", "#1b2733"
_NOT_FINITE = "#b9bfc5"

SUFFIXES = (".png", ".svg")


class Figure(figure.Figure):
    """matplotlib's figure, as a picture in a notebook, and by ``show`` in a script."""

    def _repr_png_(self) -> bytes:
        return _drawn(self, "png", dpi=100)

    def show(self, warn: bool = True) -> None:  # noqa: ARG002  matplotlib's parameter
        """Show the picture in the notebook's cell; in a script, print its file, and open it."""
        if module := notebook():
            module.display.display(self)
            return
        with tempfile.NamedTemporaryFile(suffix=".png", delete=False) as file:
            file.write(self._repr_png_())
        print(f"the picture: {file.name}")
        open_in_browser(Path(file.name).as_uri())


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches; the layout keeps all parts apart."""
    return Figure(figsize=(width, height), layout="constrained")


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure whose coordinates are inches from the top left corner."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0.0, width), ylim=(height, 0.0))
    axes.set_axis_off()
    return figure, axes


def save(figure: Figure, path: Path) -> None:
    """Write the figure as PNG or SVG, by the file's name; equal figures give equal bytes."""
    suffix = picture_suffix(path)
    write_atomically(path, _drawn(figure, suffix[1:], dpi=150))


def _drawn(figure: Figure, form: str, *, dpi: int) -> bytes:
    if len(figure.axes) < 20:  # a second layout fits labels better; for many maps it takes seconds
        figure.draw_without_rendering()
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "glassformer"}):
        metadata = {"Date": None} if form == "svg" else None
        figure.savefig(buffer, format=form, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


def picture_suffix(path: Path) -> str:
    """``.png`` or ``.svg``; UsageError for any other ending.

    >>> picture_suffix(Path("masks.SVG"))
    '.svg'
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: expected a name that ends in {' or '.join(SUFFIXES)}")
    return suffix


def tidy(axes: Axes, title: str, *, x: str, y: str) -> None:
    """Title and axis labels, a quiet grid, and no box around the picture."""
    axes.set_title(title, loc="left", fontsize=11, parse_math=False)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, color="#e4e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def thousands(axes: Axes) -> None:
    """Format the numbers along x with commas, as in 20,000."""
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")


def common_scale(matrices: Sequence[Tensor]) -> dict[str, Any]:
    """The options of ``Axes.imshow`` for one scale; infinity and NaN do not count."""
    numbers = torch.cat([matrix.flatten().float() for matrix in matrices])
    numbers = numbers[numbers.isfinite()]
    largest = numbers.abs().max().item() if numbers.any() else 1.0
    if (numbers < 0).any():
        return {"cmap": SIGNED, "vmin": -largest, "vmax": largest}
    return {"cmap": BLUES, "vmin": 0, "vmax": largest}


def draw_matrix(axes: Axes, values: Tensor, **options: Any) -> AxesImage:
    """Draw a square for each number, row 0 at the top, with thin lines if the squares are few.

    Infinity and NaN are grey. ``options`` go to ``Axes.imshow``, such as ``vmin`` and ``cmap``.
    """
    rows, columns = values.shape
    options["cmap"] = colormaps.get_cmap(options["cmap"]).with_extremes(bad=_NOT_FINITE)
    numbers = np.ma.masked_invalid(values.float().numpy())
    image = axes.imshow(numbers, interpolation="nearest", **options)
    axes.tick_params(length=0)
    axes.spines[:].set_color("#c3c9cf")
    if max(rows, columns) <= 60:
        axes.set_autoscale_on(False)
        lines: dict[str, Any] = {"color": "white", "linewidth": 0.8}
        axes.vlines([column - 0.5 for column in range(1, columns)], -0.5, rows - 0.5, **lines)
        axes.hlines([row - 0.5 for row in range(1, rows)], -0.5, columns - 0.5, **lines)
    return image


def write_numbers(axes: Axes, values: Tensor) -> None:
    """The finite numbers of a matrix in hundredths, white where the square is dark."""
    finite = values.isfinite()
    dark = 0.55 * values[finite].abs().max() if finite.any() else 0
    for row, column in finite.nonzero().tolist():
        value = values[row, column]
        colour = "white" if abs(value) > dark else INK
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.5}
        axes.text(column, row, f"{100 * value:.0f}", color=colour, **style)


def draw_scale(
    figure: Figure, image: AxesImage, axes: Axes | NDArray[np.object_], *, label: str
) -> None:
    """Draw a colour bar, at most 3.5 inches long, for one or many ``axes``."""
    height = figure.get_figheight() - 1.2
    length = min(0.9 * height, 3.5)
    shrink = length / height
    figure.colorbar(image, ax=axes, label=label, shrink=shrink, aspect=length / 0.14, pad=0.015)
