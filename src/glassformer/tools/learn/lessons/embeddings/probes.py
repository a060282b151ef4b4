"""Probes of the scaled embedding, and of the projection with the same table."""

from typing import Any

import torch
from torch import Tensor

from glassformer.tools.learn.check import Solution
from glassformer.tools.learn.holes import Hole, ids
from glassformer.tools.learn.situations import PADDING, Situation


def embedding(solution: Solution, s: Situation) -> Any:
    return _made(solution.ScaledEmbedding, s)


def model(solution: Solution, s: Situation) -> Any:
    return _made(solution.Transformer, s)


def _made(part: Any, s: Situation) -> Any:
    """A part with random numbers, or with the numbers of a table in every table of its shape."""
    if "table" not in s.axes:
        return s.module(lambda: part(7, 5))
    table = torch.tensor(s.table)
    made = s.module(lambda: part(*table.shape))
    for weight in (*made.parameters(), *made.buffers(), *vars(made).values()):
        if isinstance(weight, Tensor) and weight.shape == table.shape:
            weight.data = table
    return made


def learned(name: str) -> Any:
    """Names an answer, which is made of weights, and has to reach them."""

    def named(answer: Any, s: Situation) -> dict[str, Any]:
        is_cut = not answer.requires_grad and not s.gradients
        return {name: answer, f"No gradient of your {name} gets to the table": is_cut}

    return named


EMBEDDED = Hole("ScaledEmbedding.forward", learned("output"), embedding, tokens=ids("length", 7, 3))
PROJECTED = Hole("Transformer.project", learned("logits"), model, states="batch length 5")
PROBES = (
    EMBEDDED.probes(
        EMBEDDED.example(tokens=[[1]], table=[[0.0, 0.0], [3.0, 4.0]]),
        length=(3, 1, 7),
        padding=PADDING,
    ),
    PROJECTED.probes(
        PROJECTED.example(states=[[[2.0, 3.0]]], table=[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        length=(3, 1, 7),
    ),
)
