"""Probes of the feed-forward network, the layer norm, and the residual block."""

from typing import Any, get_args

import torch
from torch import nn

from glassformer.config import Norm
from glassformer.tools.learn.check import Solution
from glassformer.tools.learn.holes import Hole, axis
from glassformer.tools.learn.inputs import Known, filled
from glassformer.tools.learn.situations import ELSEWHERE, SIZES, WIDE, Situation


def network(solution: Solution, s: Situation) -> Any:
    return s.module(lambda: solution.FeedForward(5, 7))


def block(solution: Solution, s: Situation) -> Any:
    block, columns = s.module(lambda: _block(solution, s.norm)), torch.arange(5)
    is_dropped = s.axes.get("dropout")
    block.dropout = Known(lambda x: x * (2 * (columns % 2)) if is_dropped else x)
    return block


def _block(solution: Solution, norm: str) -> Any:
    """A residual block with torch's norm, so that no other hole matters."""
    block = solution.ResidualBlock(filled(nn.Linear(5, 5)), 5, norm=norm)
    block.norm = filled(nn.LayerNorm(5))
    block.norm.epsilon = block.norm.eps  # the name in the learner's file
    return block


X = "batch length 5"
NETWORK = Hole("FeedForward.forward", "output", network, x=X)
NORM = Hole("layer_norm", "output", x=X, weight="5", bias="5", epsilon=axis)
BEFORE = Hole("ResidualBlock.before", "input of the sublayer", block, x=X)
ADD = Hole("ResidualBlock.add", "stream", block, x=X, output=X)
PLAIN: dict[str, Any] = {"weight": [1.0, 1.0, 1.0], "bias": [0.0, 0.0, 0.0]}
LENGTHS, NORMS = (3, 1, 7), get_args(Norm)
DROPOUT = ("", "a dropout that drops the columns 0, 2 and 4")
PROBES = (
    NETWORK.probes(length=LENGTHS, type=WIDE, size=SIZES),
    NORM.probes(
        NORM.example(x=[[[1.0, 3.0, 8.0], [2.0, 2.0, 5.0]]], **PLAIN, epsilon=0.0),
        NORM.example(
            "The mean of a vector does not change its norm.",
            x=[[[1.0, 3.0, 8.0], [1e7 + 1, 1e7 + 3, 1e7 + 8]]],
            **PLAIN,
            epsilon=0.0,
        ),
        NORM.example(x=[[[2.0, 2.0, 2.0]]], **PLAIN, epsilon=0.5),
        length=LENGTHS,
        size=SIZES,
        epsilon=(0.5, 1e-5, 2.0),
        device=ELSEWHERE,
    ),
    BEFORE.probes(length=LENGTHS, norm=NORMS),
    ADD.probes(length=LENGTHS, norm=NORMS, dropout=DROPOUT),
)
