"""Word alignment drawn as lines between two columns of words."""

from collections.abc import Iterable

import numpy as np

from glassformer.alignment.align import linked, merged_to_words, piece_shares
from glassformer.data.words import Link, Span, words
from glassformer.inspection.attention_of import attention_in, check_index
from glassformer.inspection.plots.canvas import BLUES, GREY, INK, Figure, colormaps, sheet
from glassformer.inspection.plots.lettering import noted, text_inches, write
from glassformer.inspection.trace.schema import Trace

__all__ = ["links_in", "plot_alignment"]

_ROW, _LETTERS, _BETWEEN = 0.28, 10.0, 2.2


def plot_alignment(source: str, target: str, links: Iterable[Link]) -> Figure:
    """The words of both texts in two columns, with a line for each link.

    The darker a line, the surer the link. Words without a link are grey. ``links`` come from
    ``Translation.alignment`` or from :func:`links_in`.

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


def links_in(trace: Trace, *, layer: int | None = None, head: int | None = None) -> list[Link]:
    """The links of a trace's answer to its source, by the cross-attention of one layer.

    ``head=None`` is the mean of the layer's heads. ``layer=None`` is the layer of a bundle that
    stores no heads (:class:`~glassformer.alignment.align.Heads`).

    Raises:
        UsageError: a layer or head that the model does not have.
    """
    weights = attention_in(trace, "cross").weights  # (layers, heads, tgt_len, src_len)
    layers = weights.size(0)
    check_index("layer", layer, layers)
    check_index("head", head, weights.size(1))
    if layer is None:
        layer = layers - 2 if layers > 2 else layers - 1
    maps = weights[layer].mean(dim=0) if head is None else weights[layer, head]
    source, target = (
        piece_shares(side.words, [(piece.start, piece.end) for piece in side.pieces])
        for side in (trace.source, trace.target)
    )
    merged = merged_to_words(maps.numpy(), source, target)
    return [
        Link(trace.source.words[read], trace.target.words[word], float(merged[word, read]))
        for word, read in np.argwhere(linked(merged)).tolist()
    ]
