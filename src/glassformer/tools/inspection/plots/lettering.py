"""Writes tokens of any language as labels in pictures, in letters and fonts that fit.

A character that no installed font has becomes □, and a note at the foot says so.
"""

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

from glassformer.tools.inspection.plots.canvas import (
    GREY,
    INK,
    Axes,
    ConstrainedLayoutEngine,
    Figure,
    MaxNLocator,
    Text,
    font_manager,
)

__all__ = [
    "Ticks",
    "cell_inches",
    "drawable",
    "label_inches",
    "label_tokens",
    "noted",
    "text_inches",
    "write",
]

Ticks: TypeAlias = Sequence[str] | range
"""The labels of an axis: tokens, or the numbers of a range."""
LONGEST_LABEL = 18  # characters; the pictures cut a longer label

# Fonts for scripts that matplotlib's own font lacks, in the order of preference.
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
    "IPAexGothic",
    "IPAGothic",
    "Droid Sans Fallback",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
)

_UNDRAWN = "□"  # instead of a character that no installed font has
_NOTE = f"{_UNDRAWN}: no installed font has this character; Noto Sans CJK has most that are missing"
_NOTE_INCHES = 0.3


def label_tokens(axes: Axes, rows: Ticks, columns: Ticks, *, cells: tuple[float, float]) -> None:
    """Label the rows and columns of a matrix, whose numbers are ``cells`` inches wide and high.

    Letters of tokens fit the squares. If even the smallest letters do not fit, only every second
    (third, …) token has a label. A range has round numbers. Without labels there are no ticks.
    """
    for axis, labels, cell in ((axes.xaxis, columns, cells[0]), (axes.yaxis, rows, cells[1])):
        size = _points(cell)
        if isinstance(labels, range):
            size = max(size, 8.0)
            most = max(2, int(len(labels) * cell / 0.5))
            numbers = map(int, MaxNLocator(most, integer=True).tick_values(labels[0], labels[-1]))
            places = [labels.index(number) for number in dict.fromkeys(numbers) if number in labels]
        else:
            places = [*range(0, len(labels), 1 + int(size / (72 * cell * 0.95)))]
        shown = [drawable(str(labels[place])) for place in places]
        axis.set_ticks(places, shown, fontsize=size, fontfamily=_families(), parse_math=False)
    tokens = [] if isinstance(columns, range) else [drawable(token) for token in columns]
    flat = all(text_inches(token, _points(cells[0])) < cells[0] for token in tokens)
    axes.tick_params(axis="x", rotation=0 if flat else 90)


def cell_inches(count: int, *, room: float = 12.0) -> float:
    """The side of a square such that ``count`` squares fit into ``room`` inches, if possible.

    >>> cell_inches(5), cell_inches(48)
    (0.42, 0.25)
    """
    return min(0.42, max(room / max(count, 1), 0.1), 2 * room / max(count, 1))


def label_inches(labels: Ticks, cell: float) -> float:
    """The length of the longest label in inches."""
    return max((text_inches(str(label), _points(cell)) for label in labels), default=0.0)


def text_inches(text: str, points: float) -> float:
    """The length of a text in letters of ``points``; the estimate is an upper bound.

    >>> text_inches("word", 9.0) < text_inches("words", 9.0) < text_inches("words", 9.5)
    True
    """
    shown = drawable(text)
    wide = sum(c == _UNDRAWN or unicodedata.east_asian_width(c) in "WF" for c in shown)
    return (0.66 * len(shown) + 0.4 * wide) * points / 72


def write(axes: Axes, x: float, y: float, text: str, **options: Any) -> Text:
    """Write words of a sentence in fonts that have the characters, or □ (:func:`drawable`).

    ``options`` go to ``Axes.text``, such as ``fontsize``.
    """
    style: dict[str, Any] = {"fontfamily": _families(), "parse_math": False, "color": INK}
    return axes.text(x, y, drawable(text), **(style | {"va": "center"} | options))


def noted(figure: Figure) -> Figure:
    """The figure, with a note at its foot if any character is drawn as □."""
    texts = [text.get_text() for text in figure.findobj(Text)]
    if not any(_UNDRAWN in text for text in texts):
        return figure
    height = figure.get_figheight() + _NOTE_INCHES
    foot = _NOTE_INCHES / height
    figure.set_figheight(height)
    room = (0.0, foot, 1.0, 1.0 - foot)
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        label = foot if figure.get_supxlabel() else 0.0  # as high as the note
        engine.set(rect=(0.0, foot + label, 1.0, 1.0 - foot - label))
        figure.supxlabel(figure.get_supxlabel(), y=foot)
    else:
        figure.axes[0].set_position(room)
    figure.text(0.02, foot / 2, _NOTE, fontsize=7, color=GREY, va="center")
    return figure


def drawable(label: str) -> str:
    """A label for drawing, cut if too long, with □ for each character that no font has.

    >>> drawable("Donaudampfschifffahrtsgesellschaft")
    'Donaudampfschifff…'
    """
    if len(label) > LONGEST_LABEL:
        label = label[: LONGEST_LABEL - 1] + "…"
    return "".join(character if _in_a_font(character) else _UNDRAWN for character in label)


def _points(cell: float) -> float:
    """The size of letters beside squares of ``cell`` inches."""
    return min(10.0, max(4.5, 72 * cell * 0.62))


@cache
def _families() -> list[str]:
    """matplotlib's own font and the installed fallbacks."""
    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in _FALLBACKS if name in installed)]


@cache
def _in_a_font(character: str) -> bool:
    if not character.isprintable():
        return False
    return any(
        font_manager.get_font(font_manager.findfont(family)).get_char_index(ord(character))
        for family in _families()
    )
