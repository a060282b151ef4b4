"""Probes of a decoder block, and of the stack of blocks."""

from typing import Any

import torch
from torch import Tensor, nn

from glassformer import DecoderBlock
from glassformer.learn.check import Check, KnownDropout, Results, Solution, filled, numbers

__all__ = ["CHECK"]


def two_words(solution: Solution) -> dict[str, Any]:
    """two target words (1, 2, 4), a memory of two words (1, 2, 4), one head, post-norm, no masks"""
    block = filled(solution.DecoderBlock(4, 1, 3))
    return _called(block, numbers(1, 2, 4), numbers(1, 2, 4, seed=1))


def equal_lengths(solution: Solution) -> dict[str, Any]:
    """x and memory (2, 5, 33), a causal self_mask, a memory_mask that hides two words, post-norm"""
    return _called(_made(solution), *_inputs(5), _causal(), _hidden(5))


def post_norm(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 33), memory (2, 7, 33), both masks, post-norm"""
    block, (x, memory) = _made(solution), _inputs(7)
    return {
        **_called(block, x, memory, _causal(), _hidden(7)),
        "output after a changed last word": block(_changed(x), memory, _causal(), _hidden(7)),
        "output for another memory": block(x, memory.flip(0), _causal(), _hidden(7)),
    }


def pre_norm(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 33), memory (2, 7, 33), both masks, pre-norm, a factor of 3 for each dropout"""
    block = _made(solution, norm="pre")
    for part in (block.self_attention, block.cross_attention, block.feed_forward):
        part.dropout = KnownDropout(3.0)
    return _called(block, *_inputs(7), _causal(), _hidden(7))


def without_padding(solution: Solution) -> dict[str, Any]:
    """the second sentence alone, with the five visible words of its memory and no memory_mask"""
    x, memory = _inputs(7)
    return _called(_made(solution), x[1:], memory[1:, :5], _causal())


def two_steps(solution: Solution) -> dict[str, Any]:
    """x [[[1, 2]]], memory [[[3, 4]]]; block 1 doubles its input, block 2 adds the memory"""
    blocks: list[DecoderBlock] = [_Doubled(2, 1, 1), _MemoryAdded(2, 1, 1)]
    x = torch.tensor([[[1.0, 2.0]]], dtype=torch.float64)
    return _called(solution.Decoder(blocks), x, x + 2)


def post_norm_stack(solution: Solution) -> dict[str, Any]:
    """three post-norm blocks, x and memory (2, 5, 33), both masks, no final norm"""
    blocks = [DecoderBlock(33, 3, 13) for _ in range(3)]
    decoder, (x, memory) = filled(solution.Decoder(blocks)), _inputs(5)
    changed = decoder(_changed(x), memory, _causal(), _hidden(5))
    output = _called(decoder, x, memory, _causal(), _hidden(5))
    return {**output, "output after a changed last word": changed}


def pre_norm_stack(solution: Solution) -> dict[str, Any]:
    """two pre-norm blocks, x (2, 5, 33), memory (2, 7, 33), both masks, a final LayerNorm"""
    blocks = [DecoderBlock(33, 3, 13, norm="pre") for _ in range(2)]
    decoder = filled(solution.Decoder(blocks, final_norm=nn.LayerNorm(33)))
    return _called(decoder, *_inputs(7), _causal(), _hidden(7))


class _Doubled(DecoderBlock):
    def forward(
        self,
        x: Tensor,
        memory: Tensor,  # noqa: ARG002
        self_mask: Tensor | None = None,  # noqa: ARG002
        memory_mask: Tensor | None = None,  # noqa: ARG002
    ) -> Tensor:
        return 2 * x


class _MemoryAdded(DecoderBlock):
    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        self_mask: Tensor | None = None,  # noqa: ARG002
        memory_mask: Tensor | None = None,  # noqa: ARG002
    ) -> Tensor:
        return x + memory


def _made(solution: Solution, **options: Any) -> Any:
    return filled(solution.DecoderBlock(33, 3, 13, **options))


def _inputs(src_len: int) -> tuple[Tensor, Tensor]:
    return numbers(2, 5, 33), numbers(2, src_len, 33, seed=1)


def _changed(x: Tensor) -> Tensor:
    return torch.cat((x[:, :-1], -x[:, -1:]), dim=1)


def _causal() -> Tensor:
    return torch.ones(5, 5, dtype=torch.bool).tril()[None, None]


def _hidden(length: int) -> Tensor:
    """A mask that hides the last two words of the second sentence."""
    return torch.arange(length) < torch.tensor([length, length - 2])[:, None, None, None]


def _called(module: nn.Module, x: Tensor, memory: Tensor, *masks: Tensor) -> dict[str, Any]:
    copies = x.clone(), memory.clone()
    output = module(x, memory, *masks)
    changed = not (torch.equal(x, copies[0]) and torch.equal(memory, copies[1]))
    return {"output": output, "inputs are changed": changed}


def future(results: Results) -> str | None:
    """Whether a changed last word changes an earlier one, in the block or in the stack."""
    for probe in ("post_norm", "post_norm_stack"):
        if probe in results:
            values = results[probe]
            change = abs(values["output after a changed last word"] - values["output"])[:, :-1]
            if not change.max() < 1e-9:
                return f"A changed last word changes the words before it by {change.max():.3g}."
    return None


def source(results: Results) -> str | None:
    if "post_norm" not in results:
        return None
    values = results["post_norm"]
    same = (abs(values["output for another memory"] - values["output"]) < 1e-9).all()
    return "Two memories have one output." if same else None


def padding(results: Results) -> str | None:
    if "post_norm" not in results or "without_padding" not in results:
        return None
    padded, alone = (results[name]["output"] for name in ("post_norm", "without_padding"))
    if padded[1:].shape != alone.shape:
        return None
    change = abs(padded[1:] - alone).max()
    text = f"Two words of padding in the source change the output by {change:.3g}."
    return None if change < 1e-9 else text


CHECK = Check(
    probes={
        "DecoderBlock.forward": (two_words, equal_lengths, post_norm, pre_norm, without_padding),
        "Decoder.forward": (two_steps, post_norm_stack, pre_norm_stack),
    },
    laws={
        "A word depends on no later word.": future,
        "Another memory gives another output.": source,
        "Padding of the source changes nothing.": padding,
    },
)
