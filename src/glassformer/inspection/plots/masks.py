"""Masks of given sentences (sections 3.1 and 3.2.3): the keys that each query may attend to."""

from collections.abc import Sequence

import torch
from torch import Tensor

from glassformer.inspection.plots.canvas import (
    Axes,
    Figure,
    ListedColormap,
    Patch,
    draw_matrix,
    new_figure,
)
from glassformer.inspection.plots.lettering import cell_inches, label_inches, label_tokens, noted
from glassformer.model.masks import padding_mask, target_mask

__all__ = ["PAD", "plot_masks", "plot_source_mask", "plot_target_mask"]

PAD = "<pad>"
_HIDDEN, _SEEN = "#e3e6ea", "#08519c"


def plot_source_mask(source: Sequence[str]) -> Figure:
    """The mask of the encoder's self-attention: each query attends to all keys but padding.

    ``source`` holds the tokens that the encoder reads; ``<pad>`` is padding.

    >>> figure = plot_source_mask(["A", "dog", "runs", "</s>", "<pad>"])
    >>> figure.axes[0].get_xlabel()
    'key (source)'
    """
    return _plot([_Panel("Source mask: no padding", "source", "source", source, source)])


def plot_target_mask(target: Sequence[str]) -> Figure:
    """The mask of the decoder's self-attention: each query attends to itself and earlier keys.

    ``target`` holds the tokens that the decoder reads, from the start symbol on.

    >>> figure = plot_target_mask(["<s>", "Ein", "Hund", "rennt"])
    >>> figure.axes[0].get_ylabel()
    'query (target)'
    """
    return _plot([_Panel("Target mask: no later token", "target", "target", target, target)])


def plot_masks(source: Sequence[str], target: Sequence[str]) -> Figure:
    """All masks of one pair: encoder, decoder, and cross-attention.

    >>> len(plot_masks(["A", "dog", "</s>"], ["<s>", "Ein", "Hund"]).axes)
    3
    """
    return _plot(
        [
            _Panel("Encoder's self-attention", "source", "source", source, source),
            _Panel("Decoder's self-attention", "target", "target", target, target),
            _Panel("Decoder's cross-attention", "target", "source", target, source),
        ]
    )


class _Panel:
    """One mask with its labels."""

    def __init__(
        self,
        title: str,
        query_side: str,
        key_side: str,
        queries: Sequence[str],
        keys: Sequence[str],
    ) -> None:
        if not queries or not keys:
            raise ValueError("a mask needs at least one query and one key, got an empty sentence")
        self.title, self.queries, self.keys = title, queries, keys
        self.query_side, self.key_side = query_side, key_side

    def mask(self) -> Tensor:
        """The model's own mask, broadcast to ``(q_len, k_len)``."""
        ids = torch.tensor([[int(token != PAD) for token in self.keys]])
        causal = self.query_side == self.key_side == "target"
        made = target_mask(ids, 0) if causal else padding_mask(ids, 0)
        return made[0, 0].expand(len(self.queries), len(self.keys))

    def draw(self, axes: Axes, cell: float) -> None:
        colours = ListedColormap([_HIDDEN, _SEEN])
        draw_matrix(axes, self.mask(), cmap=colours, vmin=0, vmax=1)
        label_tokens(axes, rows=self.queries, columns=self.keys, cell=cell)
        axes.set_anchor("N")
        axes.set_title(self.title, fontsize=11)
        axes.set_xlabel(f"key ({self.key_side})")
        axes.set_ylabel(f"query ({self.query_side})")


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
