"""The paper's figure 2 with the shapes of both attentions, for any sizes."""

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.config import check_arguments, check_width
from glassformer.model.attention import MultiHeadAttention
from glassformer.tools.inspection.plots.canvas import GREY, INK, Axes, Figure, Rectangle, sheet

__all__ = ["attention_shapes", "plot_figure2"]

_WIDTH, _HEIGHT, _STEP = 2.4, 0.46, 0.92  # in inches: width and height of a box, box to box
_TINTS = {"MatMul": "#c6dbef", "SoftMax": "#c7e9c0", "Scaled Dot-Product Attention": "#9ecae1"}
_BOTTOM, _LETTER = 5.3, 0.067  # a letter of a result


def attention_shapes(
    attention: MultiHeadAttention,
    query: Float[Tensor, "batch q_len d_model"],
    key: Float[Tensor, "batch k_len d_model"] | None = None,
) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of a multi-head attention, in the order of the sums.

    Without a key it is self-attention. The lesson ``heads`` has the formula of each tensor.

    >>> attention = MultiHeadAttention(d_model=512, num_heads=8)
    >>> shapes = attention_shapes(attention, torch.zeros(2, 5, 512), torch.zeros(2, 7, 512))
    >>> shapes["queries"], shapes["scores"]
    ((2, 8, 5, 64), (2, 8, 5, 7))
    """
    key = query if key is None else key
    with torch.no_grad():
        projected = attention.query(query)
        queries = attention.split(projected)
        keys, values = attention.project_keys_and_values(key, key)
        scores = queries @ keys.mT
        heads = scores.softmax(dim=-1) @ values
        joint = attention.merge(heads)
        tensors = {"query": query, "key": key, "projected": projected}
        tensors |= {"queries": queries, "keys": keys, "values": values}
        tensors |= {"scores": scores, "weights": scores, "heads": heads}
        tensors |= {"joint": joint, "output": attention.output(joint)}
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def plot_figure2(
    d_model: int = 512, num_heads: int = 8, *, batch: int = 2, q_len: int = 5, k_len: int = 7
) -> Figure:
    """Scaled dot-product attention and multi-head attention (sections 3.2.1 and 3.2.2).

    The axes are (batch, len, d_model), and (batch, heads, len, d_head) in each head.

    >>> plot_figure2(16, 4).get_size_inches().tolist()
    [9.6, 5.8]
    """
    sizes = {"d_model": d_model, "num_heads": num_heads}
    check_arguments("plot_figure2", **sizes, batch=batch, q_len=q_len, k_len=k_len)
    check_width(d_model, num_heads)
    d_head = d_model // num_heads
    query, key = (f"({batch}, {length}, {d_model})" for length in (q_len, k_len))
    queries, keys = (f"({batch}, {num_heads}, {length}, {d_head})" for length in (q_len, k_len))
    weights = f"({batch}, {num_heads}, {q_len}, {k_len})"
    scaled = (
        ("MatMul", f"Q Kᵀ {weights}"),
        ("Scale", "divided by √d_head"),
        ("Mask (opt.)", "hidden: −∞"),
        ("SoftMax", f"weights {weights}"),
        ("MatMul", f"weights · V {queries}"),
    )
    joint = (
        ("Linear, for Q, K and V", f"Q {query}"),
        ("Split", f"{num_heads} heads {queries}"),
        ("Scaled Dot-Product Attention", queries),
        ("Concat", query),
        ("Linear", query),
    )
    # The right edge of each column's results.
    first, second = (3.2 + _LETTER * max(len(text) for _, text in x) for x in (scaled, joint))
    left = max(5.4, first + 0.2)
    figure, axes = sheet(max(9.6, left - 0.6 + second), 5.8)
    _column(axes, 0.6, "Scaled Dot-Product Attention", f"Q {queries}\nK, V {keys}", scaled)
    _column(axes, left, "Multi-Head Attention", f"Q {query}\nK, V {key}", joint)
    return figure


def _column(
    axes: Axes, left: float, title: str, inputs: str, boxes: tuple[tuple[str, str], ...]
) -> None:
    """Draw boxes from the bottom to the top, each with its result to the right."""
    middle = left + _WIDTH / 2
    axes.text(middle, 0.45, title, ha="center", color=INK, weight="bold")
    axes.text(middle, _BOTTOM + 0.2, inputs, ha="center", va="center", color=GREY, fontsize=9)
    for place, (box, result) in enumerate(boxes):
        top = _BOTTOM - 0.35 - place * _STEP - _HEIGHT
        axes.annotate(
            "",
            (middle, top + _HEIGHT),
            (middle, top + (_STEP if place else _STEP - 0.18)),
            arrowprops={"arrowstyle": "-|>", "color": GREY, "shrinkA": 0, "shrinkB": 0},
        )
        tint = _TINTS.get(box, "#f1f3f5")
        axes.add_patch(Rectangle((left, top), _WIDTH, _HEIGHT, facecolor=tint, edgecolor=GREY))
        axes.text(middle, top + _HEIGHT / 2, box, ha="center", va="center", color=INK, fontsize=9)
        axes.text(left + _WIDTH + 0.12, top + 0.05, result, va="center", color=GREY, fontsize=8)
