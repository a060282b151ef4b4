"""The decoder's lesson: solutions as people write them, and the numbers in its text."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from glassformer import DecoderBlock, subsequent_mask
from glassformer.tools.learn.check import measure
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson

HOLE = "        raise NotImplementedError\n"
BLOCK = """
        x = self.self_attention(x, mask=self_mask)
        x = self.cross_attention(x, memory, mask=memory_mask)
        return self.feed_forward(x)
"""
STACK = """
        for block in self.blocks:
            x = block(x, memory, self_mask, memory_mask)
        return self.norm(x)
"""


def verdicts(block=BLOCK, stack=STACK):
    """Each hole's outcome and mistakes, for the lesson's file with these bodies."""
    source = lesson("decoder").template
    for body in (block, stack):
        source = source.replace(HOLE, body, 1)
    names = {"__name__": "decoder"}
    exec(compile(source, "decoder.py", "exec"), names)
    judges = [Judge.of(lesson("decoder"), hole) for hole in lesson("decoder").holes]
    found = [judge.verdict(measure(judge.probes, SimpleNamespace(**names))) for judge in judges]
    return [(verdict.outcome, *verdict.mistakes) if verdict else ("error",) for verdict in found]


UNUSUAL = """
        def run(part, x, call):
            seen = part.norm(x) if part.norm_first else x
            total = part.dropout(call(part.sublayer, seen)) + x
            return total if part.norm_first else part.norm(total)

        x = run(self.self_attention, x, lambda f, s: f.with_weights(s, s, s, self_mask)[0])
        x = run(
            self.cross_attention,
            x,
            lambda f, s: f.attend(s, *f.project_keys_and_values(memory, memory), memory_mask),
        )
        return run(self.feed_forward, x, lambda f, s: f(s))
"""
INDEXED = """
        i = 0
        while i < len(self.blocks):
            x = self.blocks[i](x, memory, memory_mask=memory_mask, self_mask=self_mask)
            i += 1
        return self.norm(x)
"""


def test_right_solutions():
    assert verdicts() == [("right",), ("right",)]
    assert verdicts(UNUSUAL, INDEXED) == [("right",), ("right",)]


CROSS = "self.cross_attention(x, memory, mask=memory_mask)"


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (  # the result under a name that nobody reads
            BLOCK.replace("x =", "y =", 1),
            ("mistake", ("decoder-self-attention-missing",)),
        ),
        (
            BLOCK.replace("x, mask=self_mask", "x, x, x, self_mask"),
            ("mistake", ("decoder-keys-not-normed",)),
        ),
        (  # copied from the line above, and half changed
            BLOCK.replace(CROSS, CROSS.replace("cross_attention", "self_attention")),
            ("mistake", ("decoder-attention-shared",)),
        ),
        (
            BLOCK.replace(CROSS, CROSS.replace(", mask=memory_mask", "")),
            ("mistake", ("decoder-memory-mask-missing",)),
        ),
        (
            BLOCK.replace(CROSS, CROSS.replace("x, memory,", "x,")),
            ("mistake", ("decoder-memory-unused",)),
        ),
        (  # x goes in by itself, some think
            BLOCK.replace(CROSS, CROSS.replace("x, memory,", "memory,")),
            ("mistake", ("decoder-target-unused",)),
        ),
        (
            BLOCK.replace(CROSS, CROSS.replace("x, memory,", "memory, x,")),
            ("mistake", ("decoder-queries-from-memory",)),
        ),
        (
            BLOCK.replace(CROSS, CROSS.replace("x, memory,", "x, memory, x,")),
            ("mistake", ("decoder-values-from-target",)),
        ),
        (  # post-norm by hand, without dropout
            """
        x = self.self_attention.norm(x + self.self_attention.sublayer(x, x, x, self_mask))
        attended = self.cross_attention.sublayer(x, memory, memory, memory_mask)
        x = self.cross_attention.norm(x + attended)
        return self.feed_forward.norm(x + self.feed_forward.sublayer(x))
""",
            ("difference",),
        ),
        (  # both attentions at once, on one sequence
            """
        import torch
        both = torch.cat([memory, x], dim=1)
        return self.feed_forward(self.self_attention(x, both))
""",
            ("law",),
        ),
    ],
)
def test_wrong_blocks(body, verdict):
    assert verdicts(block=body) == [verdict, ("right",)]


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (
            STACK.replace("self_mask, memory_mask", "memory_mask, self_mask"),
            ("mistake", ("decoder-stack-masks-exchanged",)),
        ),
        (
            STACK.replace("self_mask, memory_mask", "self_mask"),
            ("mistake", ("decoder-stack-memory-mask-missing",)),
        ),
        (
            STACK.replace("x = block(", "x = memory = block("),
            ("mistake", ("decoder-stack-memory-replaced",)),
        ),
        (
            STACK.replace("x = block(", "x = x + block("),
            ("difference",),
        ),
    ],
)
def test_wrong_stacks(body, verdict):
    assert verdicts(stack=body) == [("right",), verdict]


def test_the_numbers_in_the_text():
    """The worked example of the block, and the answers to the two questions."""
    block = DecoderBlock(2, 1, 3, norm="pre")
    for linear in (
        block.self_attention.sublayer.output,
        block.cross_attention.sublayer.output,
        block.feed_forward.sublayer.outer,
    ):
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
    block.cross_attention.sublayer.output.bias.data = torch.tensor([0.0, 2.0])
    assert block(torch.tensor([[[3.0, 1.0]]]), torch.ones(1, 4, 2)).tolist() == [[[3.0, 3.0]]]

    block = DecoderBlock(8, 2, 16)
    x, memory = torch.randn(1, 5, 8), torch.randn(1, 7, 8)
    changed = torch.cat((x[:, :-1], -x[:, -1:]), dim=1)
    mask = subsequent_mask(5)
    with_mask = (block(x, memory, mask) - block(changed, memory, mask)).abs().sum(-1) > 1e-5
    assert with_mask.tolist() == [[False, False, False, False, True]]
    assert ((block(x, memory) - block(changed, memory)).abs().sum(-1) > 1e-5).all()
    exchanged = memory[:, [0, 3, 2, 1, 4, 5, 6]]
    assert torch.allclose(block(x, memory), block(x, exchanged), atol=1e-5)
