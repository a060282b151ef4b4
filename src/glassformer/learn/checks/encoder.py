"""What can go wrong in an encoder block, and in the stack of blocks."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer import Encoder, EncoderBlock, MultiHeadAttention, ResidualBlock
from glassformer.learn.check import Check, Faults, Results, Solution, filled, numbers

__all__ = ["CHECK"]


def reference(faults: Faults) -> Solution:
    class FaultyBlock(EncoderBlock):
        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            output = _block(self, x, mask, faults)
            return x.copy_(output) if faults.get("place") == "encoder-in-place" else output

    class FaultyStack(Encoder):
        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            if faults.get("stack_norm") == "stack-norm-first":
                return _run(self, self.norm(x), mask, faults)
            x = _run(self, x, mask, faults)
            if faults.get("stack_norm") != "stack-norm-missing":
                x = self.norm(x)
            doubled = faults.get("stack_norm") == "stack-norm-doubled"
            return F.layer_norm(x, x.shape[-1:]) if doubled else x

    return SimpleNamespace(EncoderBlock=FaultyBlock, Encoder=FaultyStack)


def _block(block: EncoderBlock, x: Tensor, mask: Tensor | None, faults: Faults) -> Tensor:
    order = faults.get("order")
    if order == "encoder-feed-forward-first":
        x = _feed(block, x, x, faults)
    first = x
    if order != "encoder-attention-missing":
        x = _attend(block.self_attention, x, _mask(mask, x, faults), faults)
    if order in ("encoder-feed-forward-first", "encoder-feed-forward-missing"):
        return x
    return _feed(block, x, first, faults)


def _mask(mask: Tensor | None, x: Tensor, faults: Faults) -> Tensor | None:
    fault = faults.get("mask")
    if fault == "encoder-mask-causal":
        causal = torch.ones(x.size(1), x.size(1), dtype=torch.bool).tril()
        return causal if mask is None else mask & causal
    if mask is None or fault == "encoder-mask-missing":
        return None
    return ~mask if fault == "encoder-mask-inverted" else mask


def _attend(
    block: ResidualBlock[MultiHeadAttention], x: Tensor, mask: Tensor | None, faults: Faults
) -> Tensor:
    inputs, total = faults.get("inputs"), faults.get("sum")
    norm_first = _norm_first(block, faults, always=("", "attention-"))
    normed = block.norm(x) if norm_first else x
    query = x if inputs in ("encoder-before-missing", "encoder-query-not-normed") else normed
    key = x if inputs in ("encoder-before-missing", "encoder-keys-not-normed") else normed
    output = block.sublayer(query, key, key, mask)
    if total == "encoder-attention-bare":
        return output
    if not faults.get("dropout"):
        output = block.dropout(output)
    if total != "encoder-residual-missing":
        output = output + (normed if total == "encoder-residual-from-norm" else x)
    if not norm_first and total != "encoder-norm-missing":
        output = block.norm(output)
    return x + output if total == "encoder-attention-twice" else output


def _feed(block: EncoderBlock, x: Tensor, first: Tensor, faults: Faults) -> Tensor:
    feed, residual = faults.get("feed"), block.feed_forward
    if feed == "encoder-feed-forward-bare":
        return residual.sublayer(x)
    owner = block.self_attention if feed == "encoder-norm-shared" else residual
    norm_first = _norm_first(residual, faults, always=("",))
    read = first if feed == "encoder-feed-forward-reads-x" else x
    if feed == "encoder-norm-twice" and norm_first:
        x = read = owner.norm(x)
    output = residual.sublayer(owner.norm(read) if norm_first else read)
    if faults.get("dropout") != "encoder-dropouts-missing":
        output = residual.dropout(output)
    output = output + (first if feed == "encoder-feed-forward-adds-to-x" else x)
    output = output if norm_first else owner.norm(output)
    return x + output if feed == "encoder-residual-twice" else output


def _norm_first(block: ResidualBlock[Any], faults: Faults, *, always: tuple[str, ...]) -> bool:
    """The place of a LayerNorm: the block's, if no fault of these kinds fixes it."""
    for kind in always:
        if faults.get("kind") in (f"encoder-{kind}always-pre", f"encoder-{kind}always-post"):
            return faults["kind"].endswith("pre")
    return block.norm_first


def _run(stack: Encoder, x: Tensor, mask: Tensor | None, faults: Faults) -> Tensor:
    fault, order = faults.get("blocks"), list(stack.blocks)
    if fault == "stack-one-block":
        order = [order[0]] * len(order)
    elif fault == "stack-first-only":
        order = order[:1]
    elif fault == "stack-last-only":
        order = order[-1:]
    elif fault == "stack-reversed":
        order = order[::-1]
    stack_mask = faults.get("stack_mask")
    if stack_mask == "stack-mask-missing":
        mask = None
    for index, block in enumerate(order):
        output = block(x, None if stack_mask == "stack-mask-once" and index else mask)
        x = x + output if fault == "stack-residual" else output
        if faults.get("stack_norm") == "stack-norm-each" and index < len(order) - 1:
            x = stack.norm(x)
    return x


def one_word(solution: Solution) -> dict[str, Any]:
    """one word [1, 2, 3, 5], one head, post-norm, no mask"""
    x = torch.tensor([[[1.0, 2.0, 3.0, 5.0]]], dtype=torch.float64)
    return _called(filled(solution.EncoderBlock(4, 1, 3)), x)


def post_norm(solution: Solution) -> dict[str, Any]:
    """x (2, 5, 21), mask (2, 1, 1, 5) that hides the last two words of the second sentence"""
    return _called(_made(solution), numbers(2, 5, 21), _hidden())


def pre_norm(solution: Solution) -> dict[str, Any]:
    """the same, with pre-norm"""
    return _called(_made(solution, norm="pre"), numbers(2, 5, 21), _hidden())


def dropouts(solution: Solution) -> dict[str, Any]:
    """the same with post-norm, and with a factor of 3 in place of each dropout"""
    block = _made(solution)
    for residual in (block.self_attention, block.feed_forward):
        residual.dropout = _Tripled()
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


class _Tripled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 3 * x


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
    reference,
    probes={
        "EncoderBlock.forward": (
            one_word,
            post_norm,
            pre_norm,
            dropouts,
            without_padding,
            reversed_words,
        ),
        "Encoder.forward": (two_steps, post_norm_stack, pre_norm_stack, stack_without_padding),
    },
    evidence={
        "encoder-mask-missing": padding,
        "encoder-mask-inverted": padding,
        "encoder-mask-causal": order,
        "stack-mask-missing": padding,
        "stack-mask-once": padding,
    },
    laws={
        "Padding changes no other word.": padding,
        "The encoder does not know the order of its words.": order,
    },
)
