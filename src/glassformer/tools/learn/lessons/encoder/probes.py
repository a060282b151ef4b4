"""Probes of an encoder block, and of the stack of blocks."""

from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from glassformer import EncoderBlock
from glassformer.tools.learn.check import Check, Solution, unchanged
from glassformer.tools.learn.inputs import Known, filled, given, hides, numbers
from glassformer.tools.learn.situations import MASKS, NONE, Situation, situations


def one_word(solution: Solution) -> dict[str, Any]:
    """one word [1, 2, 3, 5], one head, post-norm, no mask"""
    return {"output": filled(solution.EncoderBlock(4, 1, 3))(given([[[1.0, 2.0, 3.0, 5.0]]]), None)}


def post_norm(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 21), mask (2, 1, 1, 5) that hides the last two words of the second sentence"""
    return {"output": _made(solution)(_words(), hides(5, 2))}


def pre_norm(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 21), a mask (2, 1, 1, 5), pre-norm, a factor of 3 for each dropout"""
    block = _made(solution, norm="pre")
    for residual in (block.self_attention, block.feed_forward):
        residual.dropout = Known(lambda x: 3 * x)
    return {"output": block(_words(), hides(5, 2))}


def without_padding(solution: Solution) -> dict[str, Any]:
    """x (1, 3, 21), three words without padding, post-norm, no mask"""
    return {"output": _made(solution)(_words()[1:, :3], None)}


def reversed_words(solution: Solution) -> dict[str, Any]:
    """x (1, 3, 21), three words in reversed order, post-norm, no mask"""
    return {"output": _made(solution)(_words()[1:, :3].flip(1), None)}


def two_steps(solution: Solution) -> dict[str, Any]:
    """x [[[1, 2]]]; the first block doubles its input, the second adds 3"""
    blocks = [Known(lambda x, *_, **__: 2 * x), Known(lambda x, *_, **__: x + 3)]
    return {"output": solution.Encoder(blocks)(given([[[1.0, 2.0]]]), None)}


def post_norm_stack(solution: Solution) -> dict[str, Any]:
    """two post-norm blocks, x (2, 5, 21), mask (2, 1, 1, 5) that hides two words, no final norm"""
    return {"output": _stack(solution)(_words(), hides(5, 2))}


def stack_without_padding(solution: Solution) -> dict[str, Any]:
    """two post-norm blocks, x (1, 3, 21), three words without padding, no mask, no final norm"""
    return {"output": _stack(solution)(_words()[1:, :3], None)}


def in_block(solution: Solution, s: Situation) -> dict[str, Any]:
    block = s.module(lambda: solution.EncoderBlock(6, 3, 7, norm=s.norm))
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


def _made(solution: Solution, **options: Any) -> Any:
    return filled(solution.EncoderBlock(21, 3, 11, **options))


def _stack(solution: Solution, norm: Any = "post", **options: Any) -> Any:
    blocks = [EncoderBlock(21, 3, 11, norm=norm) for _ in range(2)]
    return filled(solution.Encoder(blocks, **options))


def _words() -> Tensor:
    return numbers(2, 5, 21, name="x")


AXES: dict[str, Any] = {
    **{"batch": (2, 1), "type": ("float64",), "layout": NONE, "length": (5, 1)},
    "kind": MASKS,
    "norm": ("post", "pre"),
}
CHANGED = "Two words of padding change the output of the others by {}."
CHECK = Check(
    probes={
        "EncoderBlock.forward": (
            *(one_word, post_norm, pre_norm, without_padding, reversed_words),
            *situations("x", in_block, **AXES),
        ),
        "Encoder.forward": (
            *(two_steps, post_norm_stack, stack_without_padding),
            *situations("x", in_stack, **AXES, blocks=(2, 1, 3)),
        ),
    },
    laws={
        "Padding changes no other word.": unchanged(
            post_norm, without_padding, CHANGED, at=np.s_[1:, :3]
        ),
        "Padding changes no other word in the stack.": unchanged(
            post_norm_stack, stack_without_padding, CHANGED, at=np.s_[1:, :3]
        ),
        "The encoder does not know the order of its words.": unchanged(
            without_padding,
            reversed_words,
            "With the words in reversed order, the output of a word changes by {}.",
            at=np.s_[:, ::-1],
        ),
    },
)
