"""Probes of an encoder block, and of the stack of blocks."""

from typing import Any

import torch
from torch import Tensor, nn

from glassformer import EncoderBlock
from glassformer.learn.check import Check, KnownDropout, Results, Solution, filled, numbers

__all__ = ["CHECK"]


def one_word(solution: Solution) -> dict[str, Any]:
    """one word [1, 2, 3, 5], one head, post-norm, no mask"""
    x = torch.tensor([[[1.0, 2.0, 3.0, 5.0]]], dtype=torch.float64)
    return _called(filled(solution.EncoderBlock(4, 1, 3)), x)


def post_norm(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 21), mask (2, 1, 1, 5) that hides the last two words of the second sentence"""
    return _called(_made(solution), numbers(2, 5, 21), _hidden())


def pre_norm(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 21), a mask (2, 1, 1, 5), pre-norm, a factor of 3 for each dropout"""
    block = _made(solution, norm="pre")
    for residual in (block.self_attention, block.feed_forward):
        residual.dropout = KnownDropout(3.0)
    return _called(block, numbers(2, 5, 21), _hidden())


def without_padding(solution: Solution) -> dict[str, Any]:
    """the three visible words of that second sentence alone, post-norm, no mask"""
    return _called(_made(solution), numbers(2, 5, 21)[1:, :3])


def reversed_words(solution: Solution) -> dict[str, Any]:
    """the same three words in reversed order"""
    return _called(_made(solution), numbers(2, 5, 21)[1:, :3].flip(1))


def two_steps(solution: Solution) -> dict[str, Any]:
    """x [[[1, 2]]]; the first block doubles its input, the second adds 3"""
    blocks: list[EncoderBlock] = [_Step(factor=2.0), _Step(plus=3.0)]
    return _called(solution.Encoder(blocks), torch.tensor([[[1.0, 2.0]]], dtype=torch.float64))


def post_norm_stack(solution: Solution) -> dict[str, Any]:
    """two post-norm blocks, x (2, 5, 21), mask (2, 1, 1, 5) that hides two words, no final norm"""
    blocks = [EncoderBlock(21, 3, 11) for _ in range(2)]
    return _called(filled(solution.Encoder(blocks)), numbers(2, 5, 21), _hidden())


def pre_norm_stack(solution: Solution) -> dict[str, Any]:
    """the same with pre-norm blocks, and with the final LayerNorm that they need"""
    blocks = [EncoderBlock(21, 3, 11, norm="pre") for _ in range(2)]
    encoder = filled(solution.Encoder(blocks, final_norm=nn.LayerNorm(21)))
    return _called(encoder, numbers(2, 5, 21), _hidden())


def stack_without_padding(solution: Solution) -> dict[str, Any]:
    """the post-norm blocks on the three visible words of the second sentence alone, no mask"""
    blocks = [EncoderBlock(21, 3, 11) for _ in range(2)]
    return _called(filled(solution.Encoder(blocks)), numbers(2, 5, 21)[1:, :3])


class _Step(EncoderBlock):
    """A block that a reader can follow in his head."""

    def __init__(self, *, factor: float = 1.0, plus: float = 0.0) -> None:
        super().__init__(2, 1, 1)
        self.factor, self.plus = factor, plus

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return self.factor * x + self.plus


def _made(solution: Solution, **options: Any) -> Any:
    return filled(solution.EncoderBlock(21, 3, 11, **options))


def _hidden() -> Tensor:
    """A mask that hides the last two of five words of the second sentence."""
    return torch.arange(5) < torch.tensor([5, 3])[:, None, None, None]


def _called(module: nn.Module, x: Tensor, mask: Tensor | None = None) -> dict[str, Any]:
    before = x.clone()
    output = module(x, mask)
    return {"output": output, "x is changed": not torch.equal(x, before)}


def padding(results: Results) -> str | None:
    """Whether a sentence means something else with padding, in the block or in the stack."""
    for padded, alone in (
        ("post_norm", "without_padding"),
        ("post_norm_stack", "stack_without_padding"),
    ):
        if padded in results and alone in results:
            change = abs(results[padded]["output"][1:, :3] - results[alone]["output"]).max()
            if not change < 1e-9:
                return f"Two words of padding change the output of the others by {change:.3g}."
    return None


def order(results: Results) -> str | None:
    if "without_padding" not in results or "reversed_words" not in results:
        return None
    first, second = (results[name]["output"] for name in ("without_padding", "reversed_words"))
    change = abs(first - second[:, ::-1]).max()
    if change < 1e-9:
        return None
    return f"With the words in reversed order, the output of a word changes by {change:.3g}."


CHECK = Check(
    probes={
        "EncoderBlock.forward": (one_word, post_norm, pre_norm, without_padding, reversed_words),
        "Encoder.forward": (two_steps, post_norm_stack, pre_norm_stack, stack_without_padding),
    },
    laws={
        "Padding changes no other word.": padding,
        "The encoder does not know the order of its words.": order,
    },
)
