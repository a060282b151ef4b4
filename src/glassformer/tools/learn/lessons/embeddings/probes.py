"""Probes of the scaled embedding, and of the projection with the same table."""

from typing import Any

import torch
from torch import Tensor

from glassformer.tools.learn.check import Check, Results, Solution
from glassformer.tools.learn.inputs import given, numbers, watched
from glassformer.tools.learn.situations import PADDING, Situation, situations


def one_token(solution: Solution) -> dict[str, Any]:
    """tokens [[1]], table [[0, 0], [3, 4]]"""
    return _embedded(solution, [[1]], torch.tensor([[0.0, 0.0], [3.0, 4.0]]))


def _embedded(solution: Solution, tokens: list[list[int]], table: Tensor) -> dict[str, Any]:
    embedding = solution.ScaledEmbedding(*table.shape).double()
    embedding.weight.data.copy_(table)
    watched("the table", embedding.weight)
    output = embedding(given(tokens))
    return {
        "output": output,
        "gradient of the table": _gradient(output, embedding.weight),
    }


def embedded(solution: Solution, s: Situation) -> dict[str, Any]:
    embedding = s.module(lambda: solution.ScaledEmbedding(7, 5))
    return {"output": embedding(s.tokens("tokens", s.length, 7, 3))}


def projected(solution: Solution, s: Situation) -> dict[str, Any]:
    model = s.module(lambda: solution.Transformer(7, 5))
    return {"logits": model.project(s.numbers("states", s.batch, s.length, 5))}


def one_state(solution: Solution) -> dict[str, Any]:
    """states [[[2, 3]]], table [[1, 0], [0, 1], [1, 1]]"""
    model = _model(solution, torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    return {"logits": model.project(given([[[2.0, 3.0]]]))}


def update(solution: Solution) -> dict[str, Any]:
    """states (2, 3, 5), table (7, 5); then 1 is added to each number of the table"""
    model = _model(solution, numbers(7, 5).detach())
    table = model.target_embedding.weight
    gradient = _gradient(model.project(_states()).square(), table)
    table.data += 1
    return {
        "logits after an update of the table": model.project(_states()),
        "gradient of the table": gradient,
        "number of tables": sum(weight.shape == table.shape for weight in model.parameters()),
    }


def _states() -> Tensor:
    return numbers(2, 3, 5, seed=1).detach()


def _gradient(output: Tensor, weight: Tensor) -> Tensor:
    """The gradient of the output's sum by the weight; zero if no gradient reaches the weight."""
    if output.requires_grad:
        output.sum().backward()
    return torch.zeros_like(weight) if weight.grad is None else weight.grad


def _model(solution: Solution, table: Tensor) -> Any:
    """The solution's Transformer with the numbers of ``table`` in every table of that shape."""
    vocab, d_model = table.shape
    model = solution.Transformer(vocab, d_model).double()
    for weight in (*model.parameters(), *model.buffers(), *vars(model).values()):
        if isinstance(weight, Tensor) and weight.shape == table.shape:
            weight.data.copy_(table)
    return model


def learned(results: Results) -> str | None:
    """Evidence that names a table without a gradient."""
    for values in results.values():
        gradient = values.get("gradient of the table")
        if gradient is not None and not gradient.any():
            return "After the backward pass, the gradient of the table is zero."
    return None


CHECK = Check(
    probes={
        "ScaledEmbedding.forward": (
            one_token,
            *situations("tokens", embedded, length=(3, 1, 7), padding=PADDING),
        ),
        "Transformer.project": (
            one_state,
            update,
            *situations("states", projected, length=(3, 1, 7)),
        ),
    },
    laws={"The table learns from the way in, and from the way out.": learned},
)
