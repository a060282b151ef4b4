"""Probes of the loss with label smoothing."""

import math
from typing import Any

import torch
from torch import Tensor

from glassformer.learn.check import Check, Results, Solution, numbers, picks

__all__ = ["CHECK"]


def one_label(solution: Solution) -> dict[str, Any]:
    """logits [[[0, ln 2, 0]]], labels [[1]]"""
    logits = torch.tensor([[[0.0, math.log(2), 0.0]]], dtype=torch.float64)
    return _called(solution, logits, torch.tensor([[1]]))


def equal_logits(solution: Solution) -> dict[str, Any]:
    """logits all 0 for 5 symbols, labels [[2, 4]]"""
    logits = torch.zeros(1, 2, 5, dtype=torch.float64)
    return _called(solution, logits, torch.tensor([[2, 4]]))


def sure_and_right(solution: Solution) -> dict[str, Any]:
    """logits [[[0, 0, 0, 40]]], labels [[3]], smoothing 0"""
    logits = torch.tensor([[[0.0, 0.0, 0.0, 40.0]]], dtype=torch.float64)
    return _called(solution, logits, torch.tensor([[3]]), smoothing=0.0)


def batch(solution: Solution) -> dict[str, Any]:
    """logits (3, 5, 11), labels (3, 5); the sentences have 5, 3 and 2 real labels, then padding"""
    return _called(solution, *_sentences())


def more_padding(solution: Solution) -> dict[str, Any]:
    """the inputs of `batch`, with two more positions of padding: (3, 7, 11) and (3, 7)"""
    logits, labels = _sentences()
    logits = torch.cat((logits, numbers(3, 2, 11, seed=2).detach()), dim=1)
    return _called(solution, logits, torch.cat((labels, torch.zeros_like(labels[:, :2])), dim=1))


def other_settings(solution: Solution) -> dict[str, Any]:
    """the inputs of `batch`, but with pad_id 10, and id 0 is a symbol; smoothing 0.3"""
    logits, labels = _sentences()
    labels = torch.where(labels == 0, 10, labels - 1)
    return _called(solution, logits, labels, smoothing=0.3, pad_id=10)


def far_logits(solution: Solution) -> dict[str, Any]:
    """logits [[[1000, 0, 0, 0]]], labels [[1]]"""
    logits = torch.tensor([[[1000.0, 0.0, 0.0, 0.0]]], dtype=torch.float64)
    loss = torch.as_tensor(solution.label_smoothed_cross_entropy(logits, torch.tensor([[1]])))
    return {"loss": loss.nan_to_num(nan=math.inf, posinf=math.inf)}


def only_padding(solution: Solution) -> dict[str, Any]:
    """logits all 0 for 5 symbols, labels [[0, 0]]: both are padding"""
    logits = torch.zeros(1, 2, 5, dtype=torch.float64)
    return {"loss": solution.label_smoothed_cross_entropy(logits, torch.tensor([[0, 0]]))}


def _sentences() -> tuple[Tensor, Tensor]:
    labels = picks(3, 5, below=10, seed=1) + 1
    padding = torch.arange(5) >= torch.tensor([[5], [3], [2]])
    return numbers(3, 5, 11).detach(), labels.masked_fill(padding, 0)


def _called(solution: Solution, logits: Tensor, labels: Tensor, **settings: Any) -> dict[str, Any]:
    leaf, given = logits.clone().requires_grad_(), (logits.clone(), labels.clone())
    handed = leaf.clone()
    loss = torch.as_tensor(solution.label_smoothed_cross_entropy(handed, labels, **settings))
    changed = not all(map(torch.equal, given, (handed, labels)))
    if loss.requires_grad:
        loss.sum().backward()
    gradient = torch.zeros_like(logits) if leaf.grad is None else leaf.grad
    return {
        "loss": loss,
        "a gradient reaches the logits": loss.requires_grad,
        "gradient": gradient,
        "inputs are changed": changed,
    }


def _loss(results: Results, probe: str) -> float | None:
    """The loss of a probe, if it is one number."""
    loss = results.get(probe, {}).get("loss")
    return float(loss) if loss is not None and loss.ndim == 0 else None


def more_padding_counts(results: Results) -> str | None:
    short, longer = _loss(results, "batch"), _loss(results, "more_padding")
    if short is None or longer is None or abs(longer - short) < 1e-9:
        return None
    return f"With two more positions of padding, {short:.4g} becomes {longer:.4g}."


def sure_loss(results: Results) -> str | None:
    loss = _loss(results, "sure_and_right")
    if loss is None or abs(loss) < 1e-9:
        return None
    return f"The logits 0, 0, 0 and 40 at the label lose {loss:.4g} without smoothing."


def equal_loss(results: Results) -> str | None:
    loss = _loss(results, "equal_logits")
    if loss is None or abs(loss - math.log(5)) < 1e-9:
        return None
    return f"Equal logits for 5 symbols lose {loss:.4g}; shares that sum to 1 lose ln 5 = 1.609."


def padding_gradient(results: Results) -> str | None:
    if "batch" not in results:
        return None
    gradient = abs(results["batch"]["gradient"][1, 3:]).max()
    return None if gradient == 0 else f"The logits at padding get gradients up to {gradient:.3g}."


def far_loss(results: Results) -> str | None:
    loss = _loss(results, "far_logits")
    if loss is None or math.isfinite(loss):
        return None
    return "The logits 1000, 0, 0, 0 with label 1 lose infinity or NaN; right is 975."


CHECK = Check(
    probes={
        "label_smoothed_cross_entropy": (
            one_label,
            equal_logits,
            sure_and_right,
            batch,
            more_padding,
            other_settings,
            far_logits,
            only_padding,
        )
    },
    laws={
        "Padding does not count.": more_padding_counts,
        "The logits at padding have no influence.": padding_gradient,
        "A model that is sure and right loses nothing.": sure_loss,
        "Equal logits lose the logarithm of their number.": equal_loss,
        "The loss of large logits is a number.": far_loss,
    },
)
