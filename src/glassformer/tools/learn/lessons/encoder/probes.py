"""Probes of an encoder block, and of the stack of blocks."""

from functools import partial
from typing import Any

from torch import Tensor, nn

from glassformer.tools.learn.check import Check, Solution
from glassformer.tools.learn.inputs import Known, filled, given
from glassformer.tools.learn.situations import MASKS, NONE, Situation, situations


def one_word(solution: Solution) -> dict[str, Any]:
    """one word [1, 2, 3, 5], one head, post-norm, no mask"""
    return {"output": filled(solution.EncoderBlock(4, 1, 3))(given([[[1.0, 2.0, 3.0, 5.0]]]), None)}


def two_steps(solution: Solution) -> dict[str, Any]:
    """x [[[1, 2]]]; the first block doubles its input, the second adds 3"""
    blocks = [Known(lambda x, *_, **__: 2 * x), Known(lambda x, *_, **__: x + 3)]
    return {"output": solution.Encoder(blocks)(given([[[1.0, 2.0]]]), None)}


def in_block(solution: Solution, s: Situation) -> dict[str, Any]:
    block = s.module(lambda: solution.EncoderBlock(6, 3, 7, norm=s.norm))
    for residual in (block.self_attention, block.feed_forward):
        residual.dropout = Known(lambda x: (3 if s.dropout else 1) * x)
    return _called(block, s)


def in_stack(solution: Solution, s: Situation) -> dict[str, Any]:
    def made() -> Any:
        blocks = [Known(partial(_simple, number)) for number in range(s.blocks)]
        return solution.Encoder(blocks, final_norm=nn.LayerNorm(6) if s.norm == "pre" else None)

    return _called(s.module(made), s)


def _simple(number: int, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """A block that is quick, and depends on both inputs."""
    return (number + (2 if mask is None else mask.to(x).mean())) * x + number


def _called(part: Any, s: Situation) -> dict[str, Any]:
    x = s.numbers("x", s.batch, s.length, 6)
    return {"output": part(x, *s.mask(s.length, s.length, s.kind, heads=3))}


AXES: dict[str, Any] = {
    **{"batch": (2, 1), "type": ("float64",), "layout": NONE, "length": (5, 1)},
    "kind": MASKS,
    "norm": ("post", "pre"),
}
CHECK = Check(
    probes={
        "EncoderBlock.forward": (
            one_word,
            *situations("x", in_block, **AXES, dropout=("", "a factor of 3 for each dropout")),
        ),
        "Encoder.forward": (
            two_steps,
            *situations("x", in_stack, **AXES, blocks=(2, 1, 3)),
        ),
    },
)
