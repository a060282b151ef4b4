"""Statistics of the heads: entropy, and weight on the own place, the place before, and symbols.

Clark et al. 2019 (arXiv 1906.04341, section 3) found heads of these kinds: heads that attend to
the previous token, to the separator, or broadly.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.inspection.attention_of import PART_NAMES, attention_in
from glassformer.inspection.plots.canvas import (
    Axes,
    AxesImage,
    Figure,
    draw_matrix,
    draw_scale,
    new_figure,
    write_numbers,
)
from glassformer.inspection.trace.schema import AttentionPart, Trace

__all__ = ["head_statistics", "plot_head_statistics"]

_CELL = 0.42


def head_statistics(trace: Trace, part: AttentionPart) -> dict[str, Float[Tensor, "layers heads"]]:
    """Four means over the queries of one sentence, for each head of one part of a model.

    - ``entropy``, in nats: 0 if each query attends to one key only, log(k_len) if to all alike.
    - ``own place``: share of the weight on the key of the query's own place. In the cross-attention
      it is 1 if step ``i`` reads source piece ``i``.
    - ``place before``: share on the key one place before; the mean leaves out the first query.
    - ``start, end symbol``: share on these symbols, where idle heads attend.
    """
    weights = attention_in(trace, part).weights  # (layers, heads, q_len, k_len)
    keys = trace.target.read if part == "decoder" else trace.source.pieces
    entropy = torch.special.entr(weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)).sum(-1)
    return {
        "entropy": entropy.mean(-1),
        "own place": weights.diagonal(0, -2, -1).sum(-1) / weights.size(-2),
        "place before": weights.diagonal(-1, -2, -1).sum(-1) / max(weights.size(-2) - 1, 1),
        "start, end symbol": weights[..., [key.word is None for key in keys]].sum(-1).mean(-1),
    }


def plot_head_statistics(trace: Trace) -> Figure:
    """Layers by heads, for each part of the model and each of the four statistics."""
    statistics = [head_statistics(trace, part) for part in PART_NAMES]
    layers, heads = zip(*(part["entropy"].shape for part in statistics), strict=True)
    figure = new_figure(
        4 * max(_CELL * heads[0], 1.3) + 3.6,
        sum(max(_CELL * count, 0.7) + 0.3 for count in layers) + 1.2,
    )
    panels = figure.subplots(len(PART_NAMES), 4, height_ratios=layers)
    longest = max(len(trace.source.pieces), len(trace.target.pieces), 2)
    images = {}
    for row, (part, tables) in enumerate(zip(PART_NAMES, statistics, strict=True)):
        for column, (title, values) in enumerate(tables.items()):
            axes = panels[row, column]
            images[column] = _draw(axes, values, 1.0 if column else math.log(longest))
            axes.set_title("" if row else title, fontsize=10)
            axes.tick_params(labelbottom=row == len(PART_NAMES) - 1, labelleft=column == 0)
        panels[row, 0].set_ylabel(f"{PART_NAMES[part].replace(' ', chr(10))}\nlayer", fontsize=9)
    figure.supxlabel("head", fontsize=9)
    figure.suptitle("Statistics of the heads", fontsize=11)
    draw_scale(figure, images[0], panels[:, 0], label="entropy (nats)")
    draw_scale(figure, images[1], panels[:, 1:], label="share of the weight")
    return figure


def _draw(axes: Axes, values: Tensor, most: float) -> AxesImage:
    image = draw_matrix(axes, values, vmin=0.0, vmax=most)
    write_numbers(axes, values, 2, most=most, size=7.0)
    for axis, count in ((axes.yaxis, values.size(0)), (axes.xaxis, values.size(1))):
        axis.set_ticks(range(count), [str(number + 1) for number in range(count)], fontsize=8)
    return image
