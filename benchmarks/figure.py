"""Pictures of what was measured: bars with their spread, curves, and growth on log scales."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pairs import Spread
from glassformer.inspection.plots.canvas import COLOURS, GREY, new_figure, save, tidy

__all__ = ["Curve", "bars", "curves", "growth"]

_SMALLEST_BAR = 0.42  # inches


@dataclass(frozen=True)
class Curve:
    """Points of one line."""

    x: Sequence[float]
    y: Sequence[float]


def bars(path: Path, title: str, values: Mapping[str, Spread], *, unit: str) -> None:
    """A bar for each contender, the first one (ours) in colour; the line on it is the spread."""
    figure = new_figure(7.5, 1.3 + _SMALLEST_BAR * len(values))
    axes = figure.subplots()
    tidy(axes, title, x=unit, y="")
    axes.grid(False, axis="y")
    places = range(len(values))
    medians = [value.median for value in values.values()]
    reach = [
        [value.median - value.low for value in values.values()],
        [value.high - value.median for value in values.values()],
    ]
    colours = [COLOURS[0], *["#b9c2cb"] * (len(values) - 1)]
    axes.barh(places, medians, xerr=reach, color=colours, ecolor=GREY, capsize=3)
    axes.set_yticks(places, list(values))
    axes.invert_yaxis()
    for place, value in zip(places, values.values(), strict=True):
        number = f"{value.median:,.0f}" if value.median >= 100 else f"{value.median:,.3g}"
        axes.annotate(
            number, (value.high, place), (6, 0), textcoords="offset points", va="center", fontsize=9
        )
    axes.margins(x=0.14)
    save(figure, path)


def curves(path: Path, title: str, lines: Mapping[str, Curve], *, x: str, y: str) -> None:
    """Lines over one another."""
    figure = new_figure(7.5, 4.2)
    axes = figure.subplots()
    tidy(axes, title, x=x, y=y)
    for (name, line), colour in zip(lines.items(), _endless_colours(len(lines)), strict=True):
        axes.plot(line.x, line.y, label=name, color=colour, linewidth=1.3)
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=9)
    save(figure, path)


def growth(path: Path, title: str, panels: Mapping[str, tuple[Curve, float]], *, unit: str) -> None:
    """One small panel for each thing that grows, both scales logarithmic, its slope beside it."""
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(3.1 * columns, 2.7 * rows)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes, (name, (line, slope)) in zip(grid, panels.items(), strict=False):
        tidy(axes, "", x=name, y=unit)
        axes.loglog(line.x, line.y, "o-", color=COLOURS[0], markersize=4)
        axes.set_xticks(list(line.x), [f"{value:,.0f}" for value in line.x], rotation=45)
        axes.minorticks_off()
        axes.annotate(
            f"slope {slope:.2f}", (0.04, 0.9), xycoords="axes fraction", color=GREY, fontsize=9
        )
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    save(figure, path)


def _endless_colours(number: int) -> list[str]:
    return [COLOURS[place % len(COLOURS)] for place in range(number)]
