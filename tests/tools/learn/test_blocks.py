"""The lesson on the blocks: solutions as people write them, and the numbers in its text."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from glassformer import EncoderBlock
from glassformer.tools.learn.check import measure
from glassformer.tools.learn.inputs import filled, numbers
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.lessons.blocks.plain import layer_norm

HOLES = ("FeedForward.forward", "layer_norm", "ResidualBlock.before", "ResidualBlock.add")
BODIES = {
    "FeedForward.forward": "        return self.outer(torch.relu(self.inner(x)))\n",
    "layer_norm": """
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(variance + epsilon) * weight + bias
""",
    "ResidualBlock.before": "        return self.norm(x) if self.norm_first else x\n",
    "ResidualBlock.add": """
        total = x + self.dropout(output)
        return total if self.norm_first else self.norm(total)
""",
}


def verdicts(**bodies):
    """Each hole's outcome and mistakes, for the lesson's file with these bodies."""
    head, *rest = lesson("blocks").template.split("raise NotImplementedError\n")
    source = head.rstrip(" ")
    for hole, after in zip(HOLES, rest, strict=True):
        body = bodies.get(hole.split(".")[-1], BODIES[hole])
        source += body + after.rstrip(" ")
    names = {"__name__": "blocks"}
    exec(compile(source, "blocks.py", "exec"), names)
    judges = [Judge.of(lesson("blocks"), hole) for hole in lesson("blocks").holes]
    found = [judge.verdict(measure(judge.probes, SimpleNamespace(**names))) for judge in judges]
    return {
        hole.split(".")[-1]: (verdict.outcome, *verdict.mistakes)
        for hole, verdict in zip(HOLES, found, strict=True)
    }


def test_a_right_solution():
    assert set(verdicts().values()) == {("right",)}


UNUSUAL = {
    "forward": """
        rows = []
        for t in range(x.shape[1]):
            h = torch.einsum("bd,fd->bf", x[:, t], self.inner.weight) + self.inner.bias
            h = torch.where(h > 0, h, torch.zeros_like(h))
            rows.append(h @ self.outer.weight.T + self.outer.bias)
        return torch.stack(rows, 1)
""",
    "layer_norm": """
    out = torch.empty_like(x)
    n = x.size(-1)
    for b in range(x.size(0)):
        for t in range(x.size(1)):
            v = x[b, t]
            m = sum(v) / n
            s = (sum((e - m) ** 2 for e in v) / n + epsilon) ** 0.5
            out[b, t] = (v - m) / s * weight + bias
    return out
""",
    "before": """
        if not self.norm_first:
            return x
        return self.norm(x)
""",
    "add": """
        y = self.dropout(output) + x
        if not self.norm_first:
            y = self.norm(y)
        return y
""",
}


def test_loops_are_right_too():
    assert set(verdicts(**UNUSUAL).values()) == {("right",)}


@pytest.mark.parametrize(
    ("hole", "body", "mistakes"),
    [
        (
            "forward",
            "        return self.outer(self.inner(x)).clamp(min=0)\n",
            ("feed-forward-relu-after-second",),
        ),
        (
            "forward",
            "        return x + self.outer(self.inner(x).relu())\n",
            ("feed-forward-adds-x",),
        ),
        (
            "layer_norm",  # as it stands in many a tutorial
            "    mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)\n"
            "    return weight * (x - mean) / (std + epsilon) + bias\n",
            ("norm-unbiased", "norm-epsilon-outside"),
        ),
        (
            "layer_norm",
            "    mean, var = x.mean(dim=1, keepdim=True), x.var(1, keepdim=True, unbiased=False)\n"
            "    return weight * (x - mean) / (var + epsilon) ** 0.5 + bias\n",
            ("norm-over-length",),
        ),
        (
            "layer_norm",
            "    x -= x.mean(-1, keepdim=True)\n"
            "    x /= ((x**2).mean(-1, keepdim=True) + epsilon) ** 0.5\n"
            "    return weight * x + bias\n",
            ("norm-in-place",),
        ),
        ("before", "        return self.norm(x)\n", ("before-always-norm",)),
        ("add", "        return x + self.dropout(output)\n", ("add-never-norm",)),
        ("add", "        return self.norm(x + self.dropout(output))\n", ("add-always-norm",)),
        (
            "add",
            "        if self.norm_first:\n"
            "            return self.norm(x) + self.dropout(output)\n"
            "        return self.norm(x + self.dropout(output))\n",
            ("residual-from-normed",),
        ),
        (
            "add",
            "        y = self.dropout(x + output)\n"
            "        return y if self.norm_first else self.norm(y)\n",
            ("dropout-on-sum",),
        ),
    ],
)
def test_wrong_solutions(hole, body, mistakes):
    assert verdicts(**{hole: body})[hole] == ("mistake", mistakes)


def test_an_unknown_mistake_gets_no_name():
    """With ε squared: no known mistake, and no law tells."""
    body = BODIES["layer_norm"].replace("+ epsilon)", "+ epsilon**2)")
    assert verdicts(layer_norm=body)["layer_norm"] == ("difference",)


@pytest.mark.filterwarnings("ignore:std")
def test_a_mean_that_does_not_broadcast_is_an_error_without_a_name():
    body = "    return (x - x.mean(1)) / (x.std(1) + epsilon) * weight + bias\n"
    judge = Judge.of(lesson("blocks"), "layer_norm")
    names = {"Tensor": torch.Tensor}
    exec("def layer_norm(x, weight, bias, epsilon):\n" + body, names)
    assert judge.verdict(measure(judge.probes, SimpleNamespace(**names))) is None


def test_the_plain_form_is_what_torch_has():
    norm, x = filled(nn.LayerNorm(5)), numbers(2, 3, 5)
    assert torch.allclose(layer_norm(x, norm.weight, norm.bias, 1e-5), norm(x), atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize(("norm", "size"), [("post", 1.0), ("pre", 2.3)])
def test_the_size_of_the_stream_in_the_answer(norm, size):
    torch.manual_seed(0)
    x = torch.randn(1, 20, 512)
    for _ in range(6):
        block = EncoderBlock(512, 8, 2048, norm=norm).eval()
        for weight in block.parameters():
            if weight.dim() == 2:
                nn.init.xavier_uniform_(weight)
        x = block(x)
    assert float(x.square().mean().sqrt()) == pytest.approx(size, abs=0.15)
