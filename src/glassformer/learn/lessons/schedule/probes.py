"""Probes of the learning rate's schedule, and of one update of Adam."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.learn.check import Check, Results, Solution, numbers, unpacked
from glassformer.learn.lessons.schedule.plain import AdamState

__all__ = ["CHECK"]


def worked_example(solution: Solution) -> dict[str, Any]:
    """updates 100, 400 and 10, d_model 4, warmup 100"""
    return _rates(solution, 100, 400, 10, d_model=4, warmup=100)


def first_rate(solution: Solution) -> dict[str, Any]:
    """update 1, d_model 4, warmup 100"""
    return _rates(solution, 1, d_model=4, warmup=100)


def curve(solution: Solution) -> dict[str, Any]:
    """updates 2 to 20, d_model 11, warmup 7"""
    return _rates(solution, *range(2, 21), d_model=11, warmup=7)


def late_rate(solution: Solution) -> dict[str, Any]:
    """update 500, d_model 11, warmup 7"""
    return _rates(solution, 500, d_model=11, warmup=7)


def base_model(solution: Solution) -> dict[str, Any]:
    """updates 1000, 4000 and 100000, d_model 512, and the warmup that the function has itself"""
    return _rates(solution, 1000, 4000, 100_000, d_model=512)


def larger_factor(solution: Solution) -> dict[str, Any]:
    """update 3, d_model 11, warmup 7, factor 2.5"""
    return _rates(solution, 3, d_model=11, warmup=7, factor=2.5)


def first_step(solution: Solution) -> dict[str, Any]:
    """weight [1], gradient [4], rate 0.1, state (0, [0], [0])"""
    return _step(solution, torch.ones(1), 4 * torch.ones(1), state=_begun(1), rate=0.1)


def large_gradient(solution: Solution) -> dict[str, Any]:
    """weight [1], gradient [4000], rate 0.1, state (0, [0], [0])"""
    return _step(solution, torch.ones(1), 4000 * torch.ones(1), state=_begun(1), rate=0.1)


def no_gradient(solution: Solution) -> dict[str, Any]:
    """weight [1], gradient [0], rate 0.1, state (0, [0], [0])"""
    return _step(solution, torch.ones(1), torch.zeros(1), state=_begun(1), rate=0.1)


def later_step(solution: Solution) -> dict[str, Any]:
    """weight and gradient (3, 5), rate 0.1, state (6, mean, square) after six updates"""
    return _step(
        solution, numbers(3, 5).detach(), numbers(3, 5, seed=1).detach(), state=_later(), rate=0.1
    )


def other_constants(solution: Solution) -> dict[str, Any]:
    """the inputs of `later_step`, with betas (0.5, 0.8) and epsilon 0.1"""
    weight, gradient = numbers(3, 5).detach(), numbers(3, 5, seed=1).detach()
    settings: dict[str, Any] = {"betas": (0.5, 0.8), "epsilon": 0.1}
    return _step(solution, weight, gradient, state=_later(), rate=0.1, **settings)


def _rates(solution: Solution, *updates: int, **settings: Any) -> dict[str, Any]:
    rates = [float(solution.noam_schedule(update, **settings)) for update in updates]
    return {"rate" if len(rates) == 1 else "rates": np.array(rates)}


def _begun(size: int) -> AdamState:
    return 0, torch.zeros(size), torch.zeros(size)


def _later() -> AdamState:
    return 6, 0.5 * numbers(3, 5, seed=2).detach(), numbers(3, 5, seed=3).detach() ** 2


def _step(solution: Solution, weight: Tensor, gradient: Tensor, **settings: Any) -> dict[str, Any]:
    tensors = (weight, gradient, *settings["state"][1:])
    copies = [tensor.clone() for tensor in tensors]
    new, state = unpacked(solution.adam_step(weight, gradient, **settings), "weight", "state")
    updates, mean, square = unpacked(state, "updates", "mean", "square")
    changed = not all(map(torch.equal, copies, tensors))
    values = {"weight": new, "mean": mean, "square": square, "updates": int(updates)}
    return values | {"inputs are changed": changed}


def highest(results: Results) -> str | None:
    if "curve" not in results:
        return None
    update = int(np.argmax(results["curve"]["rates"])) + 2
    return None if update == 7 else f"With a warm-up of 7, your rate is highest at update {update}."


def straight(results: Results) -> str | None:
    rates = results.get("curve", {}).get("rates", np.array([1, 1.5, 2]))
    if abs(rates[2] - 2 * rates[0]) < 1e-9:
        return None
    return f"From update 2 to 4 of the warm-up, {rates[0]:.3g} becomes {rates[2]:.3g}."


def falling(results: Results) -> str | None:
    rates = results.get("worked_example", {}).get("rates", np.array([2, 1]))
    if abs(rates[0] - 2 * rates[1]) < 1e-9:
        return None
    return f"From update 100 to 400, after the warm-up, {rates[0]:.3g} becomes {rates[1]:.3g}."


def first_size(results: Results) -> str | None:
    if "first_step" not in results:
        return None
    step = 1 - float(results["first_step"]["weight"].flat[0])
    if abs(step - 0.1) < 1e-6:
        return None
    return f"With a rate of 0.1, your first step is {step:.4g}."


def scale(results: Results) -> str | None:
    if not {"first_step", "large_gradient"} <= results.keys():
        return None
    step, large = (
        1 - float(results[name]["weight"].flat[0]) for name in ("first_step", "large_gradient")
    )
    if abs(large - step) < 1e-6:
        return None
    return f"With a gradient of 4 your step is {step:.4g}; with one of 4000 it is {large:.4g}."


CHECK = Check(
    probes={
        "noam_schedule": (
            worked_example,
            first_rate,
            curve,
            late_rate,
            base_model,
            larger_factor,
        ),
        "adam_step": (first_step, large_gradient, no_gradient, later_step, other_constants),
    },
    laws={
        "The rate is highest at the end of the warm-up.": highest,
        "In the warm-up, twice the update has twice the rate.": straight,
        "After the warm-up, four times the update has half the rate.": falling,
        "The first step of Adam is one rate.": first_size,
        "The size of the gradients does not matter to Adam.": scale,
    },
)
