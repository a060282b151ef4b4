"""The paper's figure 2 for sizes of one's own: both attentions, with the shape of each arrow."""

from glassformer.inspection.attention_shapes import attention_shapes
from glassformer.inspection.plots.canvas import GREY, INK, Axes, Figure, Rectangle, sheet

__all__ = ["plot_figure2"]

_WIDTH, _HEIGHT, _STEP = 2.4, 0.46, 0.92  # of a box, and from box to box, in inches
_TINTS = {"MatMul": "#c6dbef", "SoftMax": "#c7e9c0", "Scaled Dot-Product Attention": "#9ecae1"}
_BOTTOM = 5.3


def plot_figure2(
    d_model: int = 512, num_heads: int = 8, *, batch: int = 2, q_len: int = 5, k_len: int = 7
) -> Figure:
    """Scaled dot-product attention and multi-head attention (sections 3.2.1 and 3.2.2).

    >>> plot_figure2(16, 4).get_size_inches().tolist()
    [9.6, 5.8]
    """
    steps = attention_shapes(d_model, num_heads, batch=batch, q_len=q_len, k_len=k_len)
    shapes = {step.tensor: ", ".join(f"{size}" for size in step.axes.values()) for step in steps}
    figure, axes = sheet(9.6, 5.8)
    _column(
        axes,
        0.6,
        "Scaled Dot-Product Attention",
        f"Q ({shapes['queries']})\nK, V ({shapes['keys']})",
        (
            ("MatMul", f"Q Kᵀ ({shapes['scores']})"),
            ("Scale", "divided by √d_head"),
            ("Mask (opt.)", "hidden: −∞"),
            ("SoftMax", f"weights ({shapes['weights']})"),
            ("MatMul", f"weights · V ({shapes['heads']})"),
        ),
    )
    _column(
        axes,
        5.4,
        "Multi-Head Attention",
        f"Q ({shapes['query']})\nK, V ({shapes['key']})",
        (
            ("Linear, for Q, K and V", f"({shapes['projected']})"),
            ("Split", f"{num_heads} heads ({shapes['queries']})"),
            ("Scaled Dot-Product Attention", f"({shapes['heads']})"),
            ("Concat", f"({shapes['joint']})"),
            ("Linear", f"({shapes['output']})"),
        ),
    )
    return figure


def _column(
    axes: Axes, left: float, title: str, inputs: str, boxes: tuple[tuple[str, str], ...]
) -> None:
    """Boxes from the bottom to the top, each with its result beside it."""
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
