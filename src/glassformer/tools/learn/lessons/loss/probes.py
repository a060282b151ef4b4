"""Probes of the loss with label smoothing."""

import math
from typing import Any

import torch
from torch import Tensor

from glassformer.tools.learn.check import (
    Check,
    Probe,
    Results,
    Solution,
    probe,
)
from glassformer.tools.learn.inputs import given
from glassformer.tools.learn.situations import NONE, PADDING, SIZES, Situation, situations


def _sentence(text: str, logits: list[list[float]], labels: list[int], **settings: Any) -> Probe:
    return probe(
        text, lambda solution: _lost(solution, given([logits]), given([labels]), **settings)
    )


def in_situation(solution: Solution, s: Situation) -> dict[str, Any]:
    settings = {"smoothing": s.smoothing, "pad_id": s.pad}
    settings = {name: value for name, value in settings.items() if value != ""}
    labels = s.tokens("labels", s.length, 11, s.pad or 0)
    return _lost(solution, s.numbers("logits", s.batch, s.length, 11), labels, **settings)


def far_logits(solution: Solution) -> dict[str, Any]:
    """logits [[[1000, 0, 0, 0]]], labels [[1]]"""
    values = _lost(solution, given([[[1000.0, 0.0, 0.0, 0.0]]]), given([[1]]))
    return {"loss": values["loss"].nan_to_num(nan=math.inf, posinf=math.inf)}


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
    if abs(loss - math.log(5)) < 1e-6:
        return None
    return f"Equal logits for 5 symbols lose {loss:.4g}; shares that sum to 1 lose ln 5 = 1.609."


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
            *(ONE_LABEL, EQUAL, SURE, far_logits),
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
        "A model that is sure and right loses nothing.": sure_loss,
        "Equal logits lose the logarithm of their number.": equal_loss,
        "The loss of large logits is a number.": far_loss,
    },
)
