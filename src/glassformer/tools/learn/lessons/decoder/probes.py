"""Probes of a decoder block, and of the stack of blocks."""

from functools import partial
from typing import Any

from torch import Tensor, nn

from glassformer.tools.learn.check import Check, Solution
from glassformer.tools.learn.inputs import Known, filled, given, numbers
from glassformer.tools.learn.situations import MASKS, NONE, Situation, situations


def two_words(solution: Solution) -> dict[str, Any]:
    """two target words (1, 2, 4), a memory of two words (1, 2, 4), one head, post-norm, no masks"""
    block = filled(solution.DecoderBlock(4, 1, 3))
    return {"output": block(numbers(1, 2, 4, name="x"), numbers(1, 2, 4, seed=1, name="memory"))}


def two_steps(solution: Solution) -> dict[str, Any]:
    """x [[[1, 2]]], memory [[[3, 4]]]; block 1 doubles its input, block 2 adds the memory"""
    blocks = [Known(lambda x, *_, **__: 2 * x), Known(lambda x, memory, *_, **__: x + memory)]
    return {"output": solution.Decoder(blocks)(given([[[1.0, 2.0]]]), given([[[3.0, 4.0]]]))}


def in_block(solution: Solution, s: Situation) -> dict[str, Any]:
    block = s.module(lambda: solution.DecoderBlock(6, 3, 7, norm=s.norm))
    for part in (block.self_attention, block.cross_attention, block.feed_forward):
        part.dropout = Known(lambda x: (3 if s.dropout else 1) * x)
    return _called(block, s)


def in_stack(solution: Solution, s: Situation) -> dict[str, Any]:
    def made() -> Any:
        blocks = [Known(partial(_simple, number)) for number in range(s.blocks)]
        return solution.Decoder(blocks, final_norm=nn.LayerNorm(6) if s.norm == "pre" else None)

    return _called(s.module(made), s)


def _simple(
    number: int,
    x: Tensor,
    memory: Tensor,
    self_mask: Tensor | None = None,
    memory_mask: Tensor | None = None,
) -> Tensor:
    """A block that is quick, and depends on all its inputs."""
    own, other = (2 if mask is None else mask.to(x).mean() for mask in (self_mask, memory_mask))
    return (number + own) * x + other * memory.mean(dim=1, keepdim=True)


def _called(part: Any, s: Situation) -> dict[str, Any]:
    x, memory = s.numbers("x", s.batch, s.tgt_len, 6), s.numbers("memory", s.batch, s.src_len, 6)
    masks = {
        "self_mask": s.mask(s.tgt_len, s.tgt_len, s.kind),
        "memory_mask": s.mask(s.tgt_len, s.src_len, s.of_memory.removeprefix("memory: ")),
    }
    return {"output": part(x, memory, **{name: mask[0] for name, mask in masks.items() if mask})}


AXES: dict[str, Any] = {
    **{"batch": (2, 1), "type": ("float64",), "layout": NONE},
    **{"tgt_len": (5, 1), "src_len": (7, 1, 5)},
    "kind": (MASKS[5], *MASKS[:4]),
    "of_memory": tuple(f"memory: {each}" for each in (*MASKS[:4], MASKS[8])),
    "norm": ("post", "pre"),
}
CHECK = Check(
    probes={
        "DecoderBlock.forward": (
            two_words,
            *situations(
                "x and memory", in_block, **AXES, dropout=("", "a factor of 3 for each dropout")
            ),
        ),
        "Decoder.forward": (
            two_steps,
            *situations("x and memory", in_stack, **AXES, blocks=(2, 1, 3)),
        ),
    },
)
