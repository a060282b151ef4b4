"""The masks of sentences (sections 3.1 and 3.2.3), by which a query may attend to a key."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.model.masks import padding_mask, target_mask
from glassformer.tools.inspection.attention_of import AXES_LABELS, PART_NAMES
from glassformer.tools.inspection.plots.canvas import (
    Figure,
    ListedColormap,
    Patch,
    draw_matrix,
    new_figure,
)
from glassformer.tools.inspection.plots.lettering import (
    cell_inches,
    label_inches,
    label_tokens,
    noted,
)
from glassformer.tools.inspection.trace.schema import AttentionPart

__all__ = ["PAD", "plot_masks"]

PAD = "<pad>"
_HIDDEN, _SEEN = "#e3e6ea", "#08519c"


def plot_masks(source: Sequence[str] = (), target: Sequence[str] = ()) -> Figure:
    """The masks of a source, of a target, or of a pair, which has cross-attention too.

    Row ``i`` shows the keys that query ``i`` may attend to. ``source`` holds the tokens that the
    encoder reads, ``target`` the tokens that the decoder reads, with the start symbol; ``<pad>`` is
    padding.

    >>> [axes.get_title() for axes in plot_masks(["A", "dog", "</s>", "<pad>"]).axes]
    ["Encoder's self-attention"]
    >>> len(plot_masks(["A", "dog", "</s>"], ["<s>", "Ein", "Hund"]).axes)
    3
    """
    attentions: dict[AttentionPart, tuple[Sequence[str], Sequence[str]]] = {
        "encoder": (source, source),
        "decoder": (target, target),
        "cross": (target, source),
    }
    shown = {part: tokens for part, tokens in attentions.items() if all(tokens)}
    if not shown:
        raise ValueError("expected a source, a target, or both, got empty sentences")
    longest = max(len(tokens) for both in shown.values() for tokens in both)
    cell = cell_inches(longest, room=min(10.0, 21.0 / len(shown)))
    widths = [
        max(2.6, cell * len(keys) + label_inches(queries, cell) + 0.7)
        for queries, keys in shown.values()
    ]
    height = max(cell * len(queries) + label_inches(keys, cell) for queries, keys in shown.values())
    figure = new_figure(sum(widths), max(height, 0.9) + 1.3)
    grid = figure.subplots(1, len(shown), squeeze=False, width_ratios=widths)[0]
    colours = ListedColormap([_HIDDEN, _SEEN])
    for axes, (part, (queries, keys)) in zip(grid, shown.items(), strict=True):
        draw_matrix(axes, _mask(part, queries, keys), cmap=colours, vmin=0, vmax=1)
        label_tokens(axes, rows=queries, columns=keys, cell=cell)
        axes.set_title(PART_NAMES[part], fontsize=11)
        of_queries, of_keys = AXES_LABELS[part]
        axes.set(ylabel=of_queries, xlabel=of_keys, anchor="N")
    legend = [
        Patch(facecolor=_SEEN, label="may attend"),
        Patch(facecolor=_HIDDEN, label="masked"),
    ]
    figure.legend(handles=legend, loc="outside lower center", ncols=2, frameon=False)
    return noted(figure)


def _mask(
    part: AttentionPart, queries: Sequence[str], keys: Sequence[str]
) -> Bool[Tensor, "q_len k_len"]:
    """The mask of an attention for ``queries`` and ``keys``, computed by the model's code."""
    ids = torch.tensor([[int(token != PAD) for token in keys]])
    mask = target_mask(ids, 0) if part == "decoder" else padding_mask(ids, 0)
    return mask[0, 0].expand(len(queries), len(keys))
