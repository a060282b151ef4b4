"""What can go wrong in the loss with label smoothing."""

import math
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from glassformer.learn.check import Check, Faults, Results, Solution, numbers, picks

__all__ = ["CHECK"]


def reference(faults: Faults) -> Solution:
    def label_smoothed_cross_entropy(
        logits: Tensor, labels: Tensor, *, smoothing: float = 0.1, pad_id: int = 0
    ) -> Tensor:
        if faults.get("shift") == "loss-shifts-again":
            logits, labels = logits[:, :-1], labels[:, 1:]
        label_part, doubt = parts(logits, labels, smoothing, pad_id, faults)
        kind = faults.get("padding")
        real = labels != (0 if kind == "pad-id-fixed" else pad_id)
        every = torch.ones_like(real)
        in_sum = every if kind in ("padding-counted", "padding-in-sum") else real
        doubted = every if kind == "padding-smoothed" else in_sum
        in_mean = every if kind in ("padding-counted", "padding-in-mean") else real
        losses = label_part.masked_fill(~in_sum, 0.0) + doubt.masked_fill(~doubted, 0.0)
        loss = transformed(reduced(losses, in_mean, faults), faults.get("value"))
        return loss.detach() if faults.get("gradient") == "loss-detached" else loss

    return SimpleNamespace(label_smoothed_cross_entropy=label_smoothed_cross_entropy)


def parts(
    logits: Tensor, labels: Tensor, smoothing: float, pad_id: int, faults: Faults
) -> tuple[Tensor, Tensor]:
    """The loss of each position in two parts: of the label, and of the doubt that is spread."""
    logs = log_probabilities(logits, faults.get("logits"))
    of_label = -logs.gather(-1, labels[..., None]).squeeze(-1)
    of_all = -logs.sum(dim=-1)
    if faults.get("smoothing") == "smoothing-without-pad":
        of_all = of_all + logs[..., pad_id]
    share, other = shares(smoothing, logits.size(-1), faults.get("smoothing"))
    return (share - other) * of_label, other * of_all


def log_probabilities(logits: Tensor, fault: str | None) -> Tensor:
    match fault:
        case "softmax-twice":
            return logits.softmax(dim=-1).log_softmax(dim=-1)
        case "softmax-forgotten":
            return logits
        case "log-forgotten":
            return logits.softmax(dim=-1)
        case "softmax-over-positions":
            return logits.log_softmax(dim=-2)
        case "log-of-softmax":
            return logits.softmax(dim=-1).log()
    return logits.log_softmax(dim=-1)


def shares(smoothing: float, vocab: int, fault: str | None) -> tuple[float, float]:
    """The share of the label, and that of every other symbol."""
    kept = 1 - smoothing
    even = smoothing / vocab
    return {
        "smoothing-missing": (1.0, 0.0),
        "smoothing-exchanged": (smoothing + kept / vocab, kept / vocab),
        "smoothing-fixed": (0.9 + 0.1 / vocab, 0.1 / vocab),
        "smoothing-of-others": (kept, smoothing / (vocab - 1)),
        "smoothing-without-pad": (kept, smoothing / (vocab - 2)),
        "smoothing-truth-twice": (kept + smoothing / (vocab - 1), smoothing / (vocab - 1)),
        "smoothing-overwritten": (kept, even),
        "smoothing-not-taken": (1 + even, even),
        "smoothing-not-divided": (1.0, smoothing),
        "smoothing-not-spread": (kept, 0.0),
    }.get(fault or "", (kept + even, even))


def reduced(losses: Tensor, counted: Tensor, faults: Faults) -> Tensor:
    """One number from the losses of all positions."""
    least = 0 if faults.get("empty") == "loss-empty-nan" else 1
    match faults.get("mean"):
        case "loss-sum":
            return losses.sum()
        case "loss-of-each":
            return losses
        case "mean-of-sentences":
            return (losses.sum(dim=1) / counted.sum(dim=1).clamp(min=least)).mean()
        case "mean-over-sentences":
            return losses.sum() / losses.size(0)
    return losses.sum() / counted.sum().clamp(min=least)


def transformed(loss: Tensor, fault: str | None) -> Tensor:
    if fault == "loss-negative":
        return -loss
    return loss / math.log(2) if fault == "loss-in-bits" else loss


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
    reference=reference,
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
