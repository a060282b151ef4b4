"""Probes of the feed-forward network, the layer norm, and the residual block."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.learn.check import Check, KnownDropout, Results, Solution, filled, numbers

__all__ = ["CHECK"]


def network(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5), d_ff 7"""
    feed_forward, x = filled(solution.FeedForward(5, 7)), numbers(2, 3, 5)
    before = x.clone()
    return {"output": feed_forward(x), "x is changed": not torch.equal(before, x)}


def small_numbers(solution: Solution) -> dict[str, Any]:
    """x [[[1, 3, 8], [2, 2, 5]], [[0, 4, 1], [6, 1, 1]]], weight 1, bias 0, epsilon 0"""
    return _layer_norm(solution, _small(), torch.ones(3), torch.zeros(3), epsilon=0.0)


def large_epsilon(solution: Solution) -> dict[str, Any]:
    """the same with epsilon 0.5"""
    return _layer_norm(solution, _small(), torch.ones(3), torch.zeros(3), epsilon=0.5)


def _small() -> Tensor:
    return torch.tensor([[[1.0, 3, 8], [2, 2, 5]], [[0, 4, 1], [6, 1, 1]]])


def equal_numbers(solution: Solution) -> dict[str, Any]:
    """x [[[2, 2, 2]]], weight 1, bias 0, epsilon 0.5"""
    x = torch.full((1, 1, 3), 2.0)
    return _layer_norm(solution, x, torch.ones(3), torch.zeros(3), epsilon=0.5)


def vectors(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5), weight (5), bias (5), epsilon 0.5"""
    weight, bias = numbers(5, seed=1), numbers(5, seed=2)
    return _layer_norm(solution, numbers(2, 3, 5), weight, bias, epsilon=0.5)


def large_mean(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5) with a mean of about 100,000, weight 1, bias 0, epsilon 0.5"""
    return _layer_norm(solution, numbers(2, 3, 5) + 1e5, torch.ones(5), torch.zeros(5), epsilon=0.5)


def alone(solution: Solution) -> dict[str, Any]:
    """the first vector of `vectors` alone: x (1, 1, 5)"""
    weight, bias = numbers(5, seed=1), numbers(5, seed=2)
    return _layer_norm(solution, numbers(2, 3, 5)[:1, :1], weight, bias, epsilon=0.5)


def _layer_norm(
    solution: Solution, x: Tensor, weight: Tensor, bias: Tensor, *, epsilon: float
) -> dict[str, Any]:
    given = x.clone()
    output = solution.layer_norm(given, weight, bias, epsilon)
    return {"output": output, "x is changed": not torch.equal(x, given)}


def _block(solution: Solution, norm: str, dropout: nn.Module | None = None) -> Any:
    """A residual block with a norm and a dropout of our own: no other hole matters."""
    block = solution.ResidualBlock(filled(nn.Linear(5, 5)), 5, norm=norm)
    block.norm = filled(nn.LayerNorm(5))
    block.norm.epsilon = block.norm.eps  # its name in the learner's file
    block.dropout = dropout or nn.Identity()
    return block


def post_input(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5), norm "post\""""
    return _before(solution, "post")


def pre_input(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5), norm "pre\""""
    return _before(solution, "pre")


def _before(solution: Solution, norm: str) -> dict[str, Any]:
    x = numbers(2, 3, 5)
    return {"input of the sublayer": _block(solution, norm).before(x)} | _changed(x)


def post_sum(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5), output (2, 3, 5), norm "post", no dropout"""
    return _added(solution, "post")


def pre_sum(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5), output (2, 3, 5), norm "pre", no dropout"""
    return _added(solution, "pre")


def post_dropout(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5), output (2, 3, 5), norm "post", a dropout that drops the columns 0, 2 and 4"""
    return _added(solution, "post", KnownDropout(2.0 * (torch.arange(5) % 2)))


def pre_dropout(solution: Solution) -> dict[str, Any]:
    """x (2, 3, 5), output (2, 3, 5), norm "pre", a dropout that drops the columns 0, 2 and 4"""
    return _added(solution, "pre", KnownDropout(2.0 * (torch.arange(5) % 2)))


def _added(solution: Solution, norm: str, dropout: nn.Module | None = None) -> dict[str, Any]:
    x = numbers(2, 3, 5)
    stream = _block(solution, norm, dropout).add(x, numbers(2, 3, 5, seed=1))
    return {"stream": stream} | _changed(x)


def _changed(x: Tensor) -> dict[str, bool]:
    return {"x is changed": not torch.equal(x, numbers(2, 3, 5))}


def mean_and_variance(results: Results) -> str | None:
    if "small_numbers" not in results:
        return None
    vector = results["small_numbers"]["output"].reshape(-1, 3)[0]
    if not np.isfinite(vector).all():
        return "[1, 3, 8] becomes infinite, or no number at all."
    mean, variance = vector.mean(), vector.var()
    if abs(mean) < 1e-9 and abs(variance - 1) < 1e-4:
        return None
    return f"[1, 3, 8] has mean {mean:.4g} and variance {variance:.4g} afterwards."


def other_vectors(results: Results) -> str | None:
    if "vectors" not in results or "alone" not in results:
        return None
    whole, single = results["vectors"]["output"], results["alone"]["output"]
    if whole.shape != (2, 3, 5) or single.shape != (1, 1, 5):
        return None
    change = abs(whole[:1, :1] - single).max()
    return (
        None if change < 1e-9 else f"Without the others, the first vector changes by {change:.3g}."
    )


def free_stream(results: Results) -> str | None:
    """In pre-norm, two streams with one output differ afterwards as before."""
    if "pre_sum" not in results:
        return None
    stream = results["pre_sum"]["stream"]
    right = (numbers(2, 3, 5) + numbers(2, 3, 5, seed=1)).numpy()
    if stream.shape != right.shape:
        return f"The stream (2, 3, 5) has shape {stream.shape} afterwards."
    change = abs(stream - right).max()
    return None if change < 1e-9 else f"It differs from x + output by up to {change:.3g}."


CHECK = Check(
    probes={
        "FeedForward.forward": (network,),
        "layer_norm": (small_numbers, large_epsilon, equal_numbers, vectors, large_mean, alone),
        "ResidualBlock.before": (post_input, pre_input),
        "ResidualBlock.add": (post_sum, pre_sum, post_dropout, pre_dropout),
    },
    laws={
        "A vector's norm depends on that vector alone.": other_vectors,
        "Each vector has mean 0 and variance 1 after the norm.": mean_and_variance,
        "In pre-norm the stream is x + output.": free_stream,
    },
)
