"""Writes tokens of any language as labels in pictures, in letters and fonts that fit.

A character that no installed font has becomes □, and a note at the foot says so.
"""

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from glassformer.tools.inspection.plots.canvas import (
    GREY,
    INK,
    Axes,
    ConstrainedLayoutEngine,
    Figure,
    Text,
    font_manager,
)

__all__ = [
    "cell_inches",
    "drawable",
    "label_inches",
    "label_tokens",
    "noted",
    "text_inches",
    "write",
]

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


def label_tokens(
    axes: Axes, *, rows: Sequence[str] = (), columns: Sequence[str] = (), cell: float
) -> None:
    """Write tokens at the rows and columns of a matrix whose squares are ``cell`` inches wide.

    The letters fit the squares. If even the smallest letters do not fit, only every second (third,
    …) token has a label. Without labels there are no ticks.
    """
    size = _points(cell)
    step = 1 + int(size / (72 * cell * 0.95))
    style: dict[str, Any] = {"fontsize": size, "fontfamily": _families(), "parse_math": False}
    shown = [drawable(label) for label in columns]
    flat = all(text_inches(label, size) < cell for label in shown)
    axes.set_xticks(range(0, len(shown), step), shown[::step], **style)
    axes.tick_params(axis="x", rotation=0 if flat else 90)
    axes.set_yticks(range(0, len(rows), step), [drawable(row) for row in rows[::step]], **style)


def cell_inches(count: int, *, room: float = 12.0) -> float:
    """The side of a square such that ``count`` squares fit into ``room`` inches, if possible.

    >>> cell_inches(5), cell_inches(48)
    (0.42, 0.25)
    """
    return min(0.42, max(room / max(count, 1), 0.1), 2 * room / max(count, 1))


def label_inches(labels: Sequence[str], cell: float) -> float:
    """The length of the longest label in inches."""
    return max((text_inches(label, _points(cell)) for label in labels), default=0.0)


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
        engine.set(rect=room)
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
