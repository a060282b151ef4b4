"""The encoder's lesson: solutions as people write them, and the numbers in its text."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from glassformer import Encoder, EncoderBlock
from glassformer.tools.learn.check import measure
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson

HOLE = "        raise NotImplementedError\n"
BLOCK = """
        x = self.self_attention(x, mask=mask)
        return self.feed_forward(x)
"""
STACK = """
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)
"""


def verdicts(block=BLOCK, stack=STACK):
    """Each hole's outcome and mistakes, for the lesson's file with these bodies."""
    source = lesson("encoder").template
    for body in (block, stack):
        source = source.replace(HOLE, body, 1)
    names = {"__name__": "encoder"}
    exec(compile(source, "encoder.py", "exec"), names)
    judges = [Judge.of(lesson("encoder"), hole) for hole in lesson("encoder").holes]
    found = [judge.verdict(measure(judge.probes, SimpleNamespace(**names))) for judge in judges]
    return [(verdict.outcome, *verdict.mistakes) for verdict in found]


def test_a_right_solution():
    assert verdicts() == [("right",), ("right",)]


UNUSUAL = """
        attend, feed = self.self_attention, self.feed_forward
        pre = attend.norm_first
        queries = attend.norm(x) if pre else x
        heads, weights = attend.sublayer.with_weights(queries, queries, queries, mask)
        read = attend.dropout(heads).add(x)
        if not pre:
            read = attend.norm(read)
        rows = []
        for t in range(read.shape[1]):
            word = read[:, t : t + 1]
            out = word + feed.dropout(feed.sublayer(feed.norm(word) if pre else word))
            rows.append(out if pre else feed.norm(out))
        import torch
        return torch.cat(rows, dim=1)
"""
RECURSIVE = """
        def run(x, blocks):
            return run(blocks[0](x, mask=mask), blocks[1:]) if len(blocks) else x
        return self.norm(run(x, list(self.blocks)))
"""


def test_unusual_right_solutions():
    assert verdicts(UNUSUAL, RECURSIVE) == [("right",), ("right",)]


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (  # a mask, but for nobody
            BLOCK.replace("x, mask=mask", "x"),
            ("mistake", ("encoder-mask-missing",)),
        ),
        (  # query, key and value by their names, as in the paper
            BLOCK.replace("x, mask=mask", "query, key, value, mask").replace(
                "        x =", "        query = key = value = x\n        x =", 1
            ),
            ("mistake", ("encoder-keys-not-normed",)),
        ),
        (  # past the residual block
            BLOCK.replace("self.self_attention(", "self.self_attention.sublayer("),
            ("mistake", ("encoder-residual-missing",)),
        ),
        (  # the result under a name that nobody reads
            BLOCK.replace("x =", "attended ="),
            ("mistake", ("encoder-attention-missing",)),
        ),
        (  # residual blocks do not add, some think
            BLOCK.replace("return ", "return x + "),
            ("mistake", ("encoder-feed-forward-added-twice",)),
        ),
        (
            BLOCK.replace("x =", "x = x +").replace("return ", "return x + "),
            ("mistake", ("encoder-attention-added-twice", "encoder-feed-forward-added-twice")),
        ),
        (
            "\n        return self.self_attention(x, mask=mask) + self.feed_forward(x)\n",
            ("mistake", ("encoder-feed-forward-reads-x",)),
        ),
        (  # from a blog: post-norm by hand, without dropout
            """
        attention, network = self.self_attention, self.feed_forward
        x = attention.norm(x + attention.sublayer(x, mask=mask))
        return network.norm(x + network.sublayer(x))
""",
            ("difference",),
        ),
        (  # numpy's habit: the padding is multiplied away
            """
        if mask is not None:
            x = x * mask[:, 0, 0, :, None]
        return self.feed_forward(self.self_attention(x))
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
            """
        for layer in self.blocks:
            x = layer(x, mask)
            return self.norm(x)
""",
            ("mistake", ("stack-first-only",)),
        ),
        (
            """
        for i in range(len(self.blocks)):
            h = self.blocks[i](x, mask)
        return self.norm(h)
""",
            ("mistake", ("stack-last-only",)),
        ),
        (
            """
        outputs = [block(x, mask) for block in self.blocks]
        return self.norm(sum(outputs) / len(outputs))
""",
            ("difference",),
        ),
        (
            """
        for block in self.blocks:
            x = block(x, mask)
        return x
""",
            ("mistake", ("stack-norm-missing",)),
        ),
    ],
)
def test_wrong_stacks(body, verdict):
    assert verdicts(stack=body) == [("right",), verdict]


def test_the_numbers_in_the_text():
    """The worked examples of the holes, and the answers to the two questions."""
    x = torch.tensor([[[3.0, 1.0]]])
    for norm, words in (("post", [1, -1]), ("pre", [3, 1])):
        block = EncoderBlock(2, 1, 3, norm=norm)
        for linear in (block.self_attention.sublayer.output, block.feed_forward.sublayer.outer):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
        assert torch.allclose(block(x), torch.tensor([[words]]).float(), atol=1e-4)

    def size(blocks):
        return sum(weight.numel() for weight in Encoder(blocks).parameters())

    assert size([EncoderBlock(64, 4, 256)] * 6) == 49_984
    assert size([EncoderBlock(64, 4, 256) for _ in range(6)]) == 299_904

    words, exchanged = torch.randn(1, 5, 64), torch.tensor([0, 3, 2, 1, 4])
    encoder = Encoder([EncoderBlock(64, 4, 256) for _ in range(2)])
    outputs = encoder(words)[:, exchanged]
    assert torch.allclose(encoder(words[:, exchanged]), outputs, atol=1e-5)
