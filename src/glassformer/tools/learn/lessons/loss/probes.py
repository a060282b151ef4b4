"""Probes of the loss with label smoothing."""

import math
from typing import Any

import torch
from torch import Tensor

from glassformer.tools.learn.check import (
    GRADIENT,
    Check,
    Probe,
    Results,
    Solution,
    probe,
    unchanged,
)
from glassformer.tools.learn.inputs import given, numbers, picks
from glassformer.tools.learn.situations import NONE, PADDING, SIZES, Situation, situations


def _sentence(text: str, logits: list[list[float]], labels: list[int], **settings: Any) -> Probe:
    return probe(
        text, lambda solution: _lost(solution, given([logits]), given([labels]), **settings)
    )


def batch(solution: Solution) -> dict[str, Any]:
    """logits (3, 5, 11), labels (3, 5); the sentences have 5, 3 and 2 real labels, then padding"""
    return _lost(solution, numbers(3, 5, 11, name="logits"), _labels())


def more_padding(solution: Solution) -> dict[str, Any]:
    """logits (3, 7, 11), labels (3, 7); the sentences have 5, 3 and 2 real labels, then padding"""
    logits = torch.cat((numbers(3, 5, 11, name="logits"), numbers(3, 2, 11, seed=2)), dim=1)
    return _lost(solution, logits, torch.cat((_labels(), torch.zeros(3, 2).long()), dim=1))


def in_situation(solution: Solution, s: Situation) -> dict[str, Any]:
    settings = {"smoothing": s.smoothing, "pad_id": s.pad}
    settings = {name: value for name, value in settings.items() if value != ""}
    labels = s.tokens("labels", s.length, 11, s.pad or 0)
    return _lost(solution, s.numbers("logits", s.batch, s.length, 11), labels, **settings)


def far_logits(solution: Solution) -> dict[str, Any]:
    """logits [[[1000, 0, 0, 0]]], labels [[1]]"""
    values = _lost(solution, given([[[1000.0, 0.0, 0.0, 0.0]]]), given([[1]]))
    return {"loss": values["loss"].nan_to_num(nan=math.inf, posinf=math.inf)}


def _labels() -> Tensor:
    padding = torch.arange(5) >= torch.tensor([[5], [3], [2]])
    return given((picks(3, 5, below=10, seed=1) + 1).masked_fill(padding, 0))


def _lost(solution: Solution, logits: Tensor, labels: Tensor, **settings: Any) -> dict[str, Any]:
    loss = torch.as_tensor(solution.label_smoothed_cross_entropy(logits, labels, **settings))
    reached = loss.requires_grad or not logits.requires_grad
    return {"loss": loss, "No gradient comes back to the logits": not reached}


def sure_loss(results: Results) -> str | None:
    loss = results[SURE.__name__]["loss"]
    if abs(loss) < 1e-6:
        return None
    return f"The logits 0, 0, 0 and 40 at the label lose {loss:.4g} without smoothing."


def equal_loss(results: Results) -> str | None:
    loss = results[EQUAL.__name__]["loss"]
    if abs(loss - math.log(5)) < 1e-9:
        return None
    return f"Equal logits for 5 symbols lose {loss:.4g}; shares that sum to 1 lose ln 5 = 1.609."


def padding_gradient(results: Results) -> str | None:
    gradient = abs(results["batch"][f"{GRADIENT}logits"][1, 3:]).max()
    return None if gradient == 0 else f"The logits at padding get gradients up to {gradient:.3g}."


def far_loss(results: Results) -> str | None:
    if math.isfinite(results["far_logits"]["loss"]):
        return None
    return "The logits 1000, 0, 0, 0 with label 1 lose infinity or NaN; right is 975."


ONE_LABEL = _sentence("logits [[[0, ln 2, 0]]], labels [[1]]", [[0.0, math.log(2), 0.0]], [1])
EQUAL = _sentence("logits all 0 for 5 symbols, labels [[2, 4]]", [[0.0] * 5] * 2, [2, 4])
SURE = _sentence(
    "logits [[[0, 0, 0, 40]]], labels [[3]], smoothing 0", [[0.0, 0, 0, 40]], [3], smoothing=0.0
)
CHECK = Check(
    probes={
        "label_smoothed_cross_entropy": (
            *(ONE_LABEL, EQUAL, SURE, batch, more_padding, far_logits),
            *situations(
                "logits and labels",
                in_situation,
                layout=NONE,
                mode=NONE,
                length=(5, 1, 7),
                size=SIZES,
                padding=PADDING,
                smoothing=("", 0.3, 0.0),
                pad=("", 10, 4),
            ),
        )
    },
    laws={
        "Padding does not count.": unchanged(
            batch,
            more_padding,
            "With two more positions of padding, the loss changes by {}.",
            value="loss",
        ),
        "The logits at padding have no influence.": padding_gradient,
        "A model that is sure and right loses nothing.": sure_loss,
        "Equal logits lose the logarithm of their number.": equal_loss,
        "The loss of large logits is a number.": far_loss,
    },
)
