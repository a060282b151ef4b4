"""Probes of a decoder block, and of the stack of blocks."""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glassformer import DecoderBlock
from glassformer.tools.learn.check import Check, Results, Solution, unchanged
from glassformer.tools.learn.inputs import Known, filled, given, hides, numbers
from glassformer.tools.learn.situations import MASKS, NONE, Situation, situations


def two_words(solution: Solution) -> dict[str, Any]:
    """two target words (1, 2, 4), a memory of two words (1, 2, 4), one head, post-norm, no masks"""
    block = filled(solution.DecoderBlock(4, 1, 3))
    return {"output": block(numbers(1, 2, 4, name="x"), numbers(1, 2, 4, seed=1, name="memory"))}


def equal_lengths(solution: Solution) -> dict[str, Any]:
    """x and memory (2, 5, 33), a causal self_mask, a memory_mask that hides two words, post-norm"""
    return {"output": _made(solution)(_words(), *_memory(5))}


def post_norm(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 33), memory (2, 7, 33), both masks, post-norm"""
    return {"output": _made(solution)(_words(), *_memory(7))}


def changed_word(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 33) with a changed last word, memory (2, 7, 33), both masks; the other outputs"""
    return {"output": _made(solution)(_changed(_words()), *_memory(7))[:, :-1]}


def another_memory(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 33), memory (2, 7, 33) with the two sentences exchanged, both masks, post-norm"""
    memory, *masks = _memory(7)
    return {"output": _made(solution)(_words(), memory.flip(0), *masks)}


def pre_norm(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 33), memory (2, 7, 33), both masks, pre-norm, a factor of 3 for each dropout"""
    block = _made(solution, norm="pre")
    for part in (block.self_attention, block.cross_attention, block.feed_forward):
        part.dropout = Known(lambda x: 3 * x)
    return {"output": block(_words(), *_memory(7))}


def without_padding(solution: Solution) -> dict[str, Any]:
    """x (1, 5, 33), a memory of five words without padding, no memory_mask, post-norm"""
    memory, self_mask, _ = _memory(7)
    return {"output": _made(solution)(_words()[1:], memory[1:, :5], self_mask)}


def two_steps(solution: Solution) -> dict[str, Any]:
    """x [[[1, 2]]], memory [[[3, 4]]]; block 1 doubles its input, block 2 adds the memory"""
    blocks = [Known(lambda x, *_, **__: 2 * x), Known(lambda x, memory, *_, **__: x + memory)]
    return {"output": solution.Decoder(blocks)(given([[[1.0, 2.0]]]), given([[[3.0, 4.0]]]))}


def post_norm_stack(solution: Solution) -> dict[str, Any]:
    """three post-norm blocks, x and memory (2, 5, 33), both masks, no final norm"""
    return {"output": _stack(solution, 3)(_words(), *_memory(5))}


def changed_word_stack(solution: Solution) -> dict[str, Any]:
    """three post-norm blocks, memory (2, 5, 33), x with a changed last word; the other outputs"""
    return {"output": _stack(solution, 3)(_changed(_words()), *_memory(5))[:, :-1]}


def in_block(solution: Solution, s: Situation) -> dict[str, Any]:
    return _called(s.module(lambda: solution.DecoderBlock(6, 3, 7, norm=s.norm)), s)


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


def _made(solution: Solution, **options: Any) -> Any:
    return filled(solution.DecoderBlock(33, 3, 13, **options))


def _stack(solution: Solution, blocks: int, norm: Any = "post", **options: Any) -> Any:
    made = [DecoderBlock(33, 3, 13, norm=norm) for _ in range(blocks)]
    return filled(solution.Decoder(made, **options))


def _words() -> Tensor:
    return numbers(2, 5, 33, name="x")


def _changed(x: Tensor) -> Tensor:
    return torch.cat((x[:, :-1], -x[:, -1:]), dim=1)


def _memory(src_len: int) -> tuple[Tensor, Tensor, Tensor]:
    """A memory, a causal mask for the target, and a mask that hides two words of the memory."""
    causal = torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
    return numbers(2, src_len, 33, seed=1, name="memory"), causal, hides(src_len, 2)


def source(results: Results) -> str | None:
    change = abs(results["another_memory"]["output"] - results["post_norm"]["output"])
    return "Two memories have one output." if (change < 1e-9).all() else None


AXES: dict[str, Any] = {
    **{"batch": (2, 1), "type": ("float64",), "layout": NONE},
    **{"tgt_len": (5, 1), "src_len": (7, 1, 5)},
    "kind": (MASKS[5], *MASKS[:4]),
    "of_memory": tuple(f"memory: {each}" for each in (*MASKS[:4], MASKS[8])),
    "norm": ("post", "pre"),
}
CHANGED = "A changed last word changes the words before it by {}."
CHECK = Check(
    probes={
        "DecoderBlock.forward": (
            *(two_words, equal_lengths, post_norm, changed_word, another_memory, pre_norm),
            without_padding,
            *situations("x and memory", in_block, **AXES),
        ),
        "Decoder.forward": (
            *(two_steps, post_norm_stack, changed_word_stack),
            *situations("x and memory", in_stack, **AXES, blocks=(2, 1, 3)),
        ),
    },
    laws={
        "A word depends on no later word.": unchanged(
            post_norm, changed_word, CHANGED, at=np.s_[:, :-1]
        ),
        "A word depends on no later word in the stack.": unchanged(
            post_norm_stack, changed_word_stack, CHANGED, at=np.s_[:, :-1]
        ),
        "Another memory gives another output.": source,
        "Padding of the source changes nothing.": unchanged(
            post_norm,
            without_padding,
            "Two words of padding in the source change the output by {}.",
            at=np.s_[1:],
        ),
    },
)
