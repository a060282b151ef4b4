"""Word alignment drawn as lines between two columns of words."""

from collections.abc import Iterable

from glassformer.data.words import Link, Span, words
from glassformer.tools.inspection.plots.canvas import BLUES, GREY, INK, Figure, colormaps, sheet
from glassformer.tools.inspection.plots.lettering import noted, text_inches, write

__all__ = ["plot_alignment"]

_ROW, _LETTERS, _BETWEEN = 0.28, 10.0, 2.2


def plot_alignment(source: str, target: str, links: Iterable[Link]) -> Figure:
    """The words of both texts in two columns, with a line for each link.

    Surer links have darker lines. Words without a link are grey. ``links`` come from
    ``Translation.alignment`` or from :func:`~glassformer.alignment.align.align`.

    Raises:
        ValueError: a link's span is no word of its text.

    >>> figure = plot_alignment("a dog", "ein Hund", [Link((2, 5), (4, 8), 0.9)])
    >>> len(figure.axes[0].lines)
    1
    """
    links = list(links)
    spans = words(source), words(target)
    _check(links, spans)
    texts = [
        [text[slice(*span)] for span in side]
        for text, side in zip((source, target), spans, strict=True)
    ]
    breadths = [max((text_inches(word, _LETTERS) for word in side), default=0.0) for side in texts]
    rows = max(map(len, texts))
    width = max(sum(breadths) + _BETWEEN + 0.6, 5.5)
    left = (width - _BETWEEN + breadths[0] - breadths[1]) / 2
    right = left + _BETWEEN
    figure, axes = sheet(width, rows * _ROW + 1.0)
    axes.text(left, 0.5, "source", fontsize=9, color=GREY, ha="right", va="center")
    axes.text(right, 0.5, "target", fontsize=9, color=GREY, va="center")
    heights = [{span: 0.75 + (row + 0.5) * _ROW for row, span in enumerate(side)} for side in spans]
    for link in sorted(links, key=lambda link: link.weight):
        ends = [heights[0][link.source], heights[1][link.target]]
        blue = colormaps[BLUES](0.3 + 0.7 * min(max(link.weight, 0.0), 1.0))
        axes.plot([left + 0.08, right - 0.08], ends, color=blue, linewidth=1.8)
    linked_words = {link.source for link in links}, {link.target for link in links}
    for side, (at, align) in enumerate(((left, "right"), (right, "left"))):
        for span, word in zip(spans[side], texts[side], strict=True):
            colour = INK if span in linked_words[side] else "#9aa4ad"
            write(axes, at, heights[side][span], word, ha=align, fontsize=_LETTERS, color=colour)
    axes.text(0.3, 0.22, "Word alignment", fontsize=11, color=INK, va="center")
    return noted(figure)


def _check(links: list[Link], spans: tuple[list[Span], list[Span]]) -> None:
    for link in links:
        for side, span, known in zip(
            ("source", "target"), (link.source, link.target), spans, strict=True
        ):
            if span not in known:
                raise ValueError(f"link {link}: {span} is no word of the {side}")
