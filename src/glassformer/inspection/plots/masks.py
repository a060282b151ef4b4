"""Masks of given sentences (sections 3.1 and 3.2.3): the keys that each query may attend to."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.inspection.attention_of import AXES_LABELS, PART_NAMES
from glassformer.inspection.plots.canvas import (
    Axes,
    Figure,
    ListedColormap,
    Patch,
    draw_matrix,
    new_figure,
)
from glassformer.inspection.plots.lettering import cell_inches, label_inches, label_tokens, noted
from glassformer.inspection.trace.schema import AttentionPart
from glassformer.model.masks import check_mask, padding_mask, target_mask

__all__ = [
    "PAD",
    "plot_mask",
    "plot_masks",
]

PAD = "<pad>"
_HIDDEN, _SEEN = "#e3e6ea", "#08519c"


def plot_mask(
    mask: Bool[Tensor, "q_len k_len"],
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    title: str = "Mask",
) -> Figure:
    """Any mask: row ``i`` shows the keys that query ``i`` may attend to.

    >>> from glassformer import subsequent_mask
    >>> figure = plot_mask(subsequent_mask(3), "abc", "abc", title="No look ahead")
    >>> figure.axes[0].get_title()
    'No look ahead'
    """
    check_mask(mask, (len(query_labels), len(key_labels)))
    mask = mask.expand(len(query_labels), len(key_labels))
    return _plot([_Panel(title, mask, list(query_labels), list(key_labels))])


def plot_masks(source: Sequence[str] = (), target: Sequence[str] = ()) -> Figure:
    """The masks of a source, of a target, or of a pair: the pair has cross-attention too.

    ``source`` holds the tokens that the encoder reads, ``target`` those that the decoder reads,
    from the start symbol on; ``<pad>`` is padding.

    >>> [axes.get_title() for axes in plot_masks(["A", "dog", "</s>", "<pad>"]).axes]
    ["Encoder's self-attention"]
    >>> len(plot_masks(["A", "dog", "</s>"], ["<s>", "Ein", "Hund"]).axes)
    3
    """
    panels = []
    if source:
        panels.append(_panel("encoder", source, source))
    if target:
        panels.append(_panel("decoder", target, target))
    if source and target:
        panels.append(_panel("cross", target, source))
    if not panels:
        raise ValueError("expected a source, a target, or both, got empty sentences")
    return _plot(panels)


@dataclass(frozen=True)
class _Panel:
    """One mask with its labels."""

    title: str
    mask: Bool[Tensor, "q_len k_len"]
    queries: Sequence[str]
    keys: Sequence[str]
    query_label: str = "query"
    key_label: str = "key"

    def draw(self, axes: Axes, cell: float) -> None:
        colours = ListedColormap([_HIDDEN, _SEEN])
        draw_matrix(axes, self.mask, cmap=colours, vmin=0, vmax=1)
        label_tokens(axes, rows=self.queries, columns=self.keys, cell=cell)
        axes.set_anchor("N")
        axes.set_title(self.title, fontsize=11)
        axes.set_xlabel(self.key_label)
        axes.set_ylabel(self.query_label)


def _panel(part: AttentionPart, queries: Sequence[str], keys: Sequence[str]) -> _Panel:
    """The model's own mask of an attention, for these tokens."""
    ids = torch.tensor([[int(token != PAD) for token in keys]], dtype=torch.long)
    made = target_mask(ids, 0) if part == "decoder" else padding_mask(ids, 0)
    mask = made[0, 0].expand(len(queries), len(keys))
    return _Panel(PART_NAMES[part], mask, queries, keys, *AXES_LABELS[part])


def _plot(panels: list[_Panel]) -> Figure:
    longest = max(len(tokens) for panel in panels for tokens in (panel.keys, panel.queries))
    cell = cell_inches(longest, room=min(10.0, 21.0 / len(panels)))
    widths = [
        max(2.6, cell * len(panel.keys) + label_inches(panel.queries, cell) + 0.7)
        for panel in panels
    ]
    heights = [cell * len(panel.queries) + label_inches(panel.keys, cell) for panel in panels]
    figure = new_figure(sum(widths), max(max(heights), 0.9) + 1.3)
    axes = figure.subplots(1, len(panels), squeeze=False, width_ratios=widths)[0]
    for panel, place in zip(panels, axes, strict=True):
        panel.draw(place, cell)
    legend = [
        Patch(facecolor=_SEEN, label="may attend"),
        Patch(facecolor=_HIDDEN, label="masked"),
    ]
    figure.legend(handles=legend, loc="outside lower center", ncols=2, frameon=False)
    return noted(figure)
