"""Probes of the feed-forward network, the layer norm, and the residual block."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.tools.learn.check import Check, Probe, Results, Solution, probe
from glassformer.tools.learn.inputs import Known, filled, given, numbers
from glassformer.tools.learn.situations import ELSEWHERE, NONE, SIZES, Situation, situations

SMALL = [[[1.0, 3.0, 8.0], [2.0, 2.0, 5.0]], [[0.0, 4.0, 1.0], [6.0, 1.0, 1.0]]]


def network(solution: Solution, s: Situation) -> dict[str, Any]:
    network = s.module(lambda: solution.FeedForward(5, 7))
    return {"output": network(s.numbers("x", s.batch, s.length, 5))}


def normed(solution: Solution, s: Situation) -> dict[str, Any]:
    vectors = s.numbers("weight", 5), s.numbers("bias", 5)
    x = s.numbers("x", s.batch, s.length, 5)
    return {"output": solution.layer_norm(x, *vectors, s.epsilon)}


def before(solution: Solution, s: Situation) -> dict[str, Any]:
    x = s.numbers("x", s.batch, s.length, 5)
    return {"input of the sublayer": _in_situation(solution, s).before(x)}


def added(solution: Solution, s: Situation) -> dict[str, Any]:
    x, output = (s.numbers(name, s.batch, s.length, 5) for name in ("x", "the output"))
    block, columns = _in_situation(solution, s), torch.arange(5)
    block.dropout = Known(lambda x: x * (2 * (columns % 2)) if s.dropout else x)
    return {"stream": block.add(x, output)}


def _in_situation(solution: Solution, s: Situation) -> Any:
    return s.module(lambda: _block(solution, s.norm))


def _normed(x: list[list[list[float]]], epsilon: float) -> Probe:
    return probe(
        f"x {x}, weight 1, bias 0, epsilon {epsilon}",
        lambda solution: _plain_norm(solution, given(x), epsilon),
    )


def large_mean(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5) with a mean of about 100,000, weight 1, bias 0, epsilon 0.5"""
    return _plain_norm(solution, numbers(2, 3, 5, name="x") + 1e5, 0.5)


def _plain_norm(solution: Solution, x: Tensor, epsilon: float) -> dict[str, Any]:
    width = x.size(-1)
    return {"output": solution.layer_norm(x, torch.ones(width), torch.zeros(width), epsilon)}


def _block(solution: Solution, norm: str) -> Any:
    """A residual block with torch's norm, so that no other hole matters."""
    block = solution.ResidualBlock(filled(nn.Linear(5, 5)), 5, norm=norm)
    block.norm = filled(nn.LayerNorm(5))
    block.norm.epsilon = block.norm.eps  # the name in the learner's file
    block.dropout = nn.Identity()
    return block


def mean_and_variance(results: Results) -> str | None:
    vector = results[SMALL_NUMBERS.__name__]["output"].reshape(-1, 3)[0]
    if not np.isfinite(vector).all():
        return "[1, 3, 8] becomes infinite or NaN."
    mean, variance = vector.mean(), vector.var()
    if abs(mean) < 1e-6 and abs(variance - 1) < 1e-4:
        return None
    return f"[1, 3, 8] has mean {mean:.4g} and variance {variance:.4g} afterwards."


def without_mean(results: Results) -> str | None:
    x = numbers(2, 3, 5).detach().numpy()
    right = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.5)
    change = abs(results["large_mean"]["output"] - right).max()
    return None if change < 1e-9 else f"A mean of 100,000 in x changes it by up to {change:.3g}."


LENGTHS, NORMS = (3, 1, 7), ("post", "pre")
SMALL_NUMBERS = _normed(SMALL, 0.0)
DROPOUT = ("", "a dropout that drops the columns 0, 2 and 4")
CHECK = Check(
    probes={
        "FeedForward.forward": situations("x", network, length=LENGTHS),
        "layer_norm": (
            *(SMALL_NUMBERS, _normed(SMALL, 0.5), _normed([[[2.0, 2.0, 2.0]]], 0.5)),
            large_mean,
            *situations(
                "x",
                normed,
                length=LENGTHS,
                size=SIZES,
                epsilon=(0.5, 1e-5, 2.0),
                mode=NONE,
                device=ELSEWHERE,
            ),
        ),
        "ResidualBlock.before": situations("x", before, length=LENGTHS, norm=NORMS),
        "ResidualBlock.add": situations(
            "x and output", added, length=LENGTHS, norm=NORMS, dropout=DROPOUT
        ),
    },
    laws={
        "Each vector has mean 0 and variance 1 after the norm.": mean_and_variance,
        "The mean of a vector does not change its norm.": without_mean,
    },
)
