"""What can go wrong in the learning rate's schedule, and in one update of Adam."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.learn.check import Check, Faults, Results, Solution, numbers, unpacked
from glassformer.learn.lessons.schedule.plain import AdamState

__all__ = ["CHECK"]


def reference(faults: Faults) -> Solution:
    def noam_schedule(
        update: int | float, *, d_model: int, warmup: int = 4000, factor: float = 1.0
    ) -> float:
        update -= faults.get("count") == "noam-from-zero"
        warmup = 4000 if faults.get("warmup") == "noam-warmup-fixed" else warmup
        factor = 1.0 if faults.get("factor") == "noam-factor-unused" else factor
        power = {"noam-width-up": 0.5, "noam-width-unused": 0.0, "noam-width-without-root": -1.0}
        root = update**-0.5
        line = {
            "noam-line-to-one": update / warmup,
            "noam-line-of-root": update * warmup**-0.5,
        }.get(faults.get("line", ""), update * warmup**-1.5)
        rate = {
            "noam-max": max(root, line),
            "noam-no-warmup": root,
            "noam-no-decay": line,
        }.get(faults.get("terms", ""), min(root, line))
        return factor * d_model ** power.get(faults.get("width", ""), -0.5) * rate

    def adam_step(
        weight: Tensor,
        gradient: Tensor,
        *,
        state: AdamState,
        rate: float,
        betas: tuple[float, float] = (0.9, 0.98),
        epsilon: float = 1e-9,
    ) -> tuple[Tensor, AdamState]:
        first, second = {
            "adam-betas-exchanged": (betas[1], betas[0]),
            "adam-betas-fixed": (0.9, 0.98),
        }.get(faults.get("betas", ""), betas)
        count = state[0] + (faults.get("updates") != "adam-from-zero")
        mean = running_mean(state[1], gradient, first, faults.get("mean"))
        squared = gradient if faults.get("squared") else gradient**2
        square = second * state[2] + (1 - second) * squared
        direction, unbiased = divided(mean, square, count, (first, second), epsilon, faults)
        new = weight + (rate if faults.get("sign") == "adam-ascent" else -rate) * direction
        if faults.get("place") == "adam-in-place":
            weight.copy_(new)
        updates = state[0] + (faults.get("state") != "adam-count-unchanged")
        if faults.get("state") == "adam-state-unbiased":
            mean, square = unbiased
        return new, (updates, mean, square)

    return SimpleNamespace(noam_schedule=noam_schedule, adam_step=adam_step)


def running_mean(mean: Tensor, gradient: Tensor, beta: float, fault: str | None) -> Tensor:
    if fault == "adam-mean-weights-exchanged":
        return (1 - beta) * mean + beta * gradient
    return beta * mean + (gradient if fault == "adam-mean-unweighted" else (1 - beta) * gradient)


def divided(
    mean: Tensor,
    square: Tensor,
    count: int,
    betas: tuple[float, float],
    epsilon: float,
    faults: Faults,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The direction of the step, and both means without their bias."""
    bias = faults.get("bias")
    power = 1 if bias == "adam-correction-without-power" else count
    rest, rest_of_square = (1 - torch.tensor(beta) ** power for beta in betas)
    if bias == "adam-correction-missing":
        rest = rest_of_square = torch.ones(())
    mean, square = mean / rest, square / rest_of_square
    divisor = {
        "adam-root-missing": square + epsilon,
        "adam-epsilon-inside": (square + epsilon).sqrt(),
        "adam-epsilon-missing": square.sqrt(),
        "adam-epsilon-early": square.sqrt() + epsilon / rest_of_square.sqrt(),
    }.get(faults.get("divisor", ""), square.sqrt() + epsilon)
    return mean / divisor, (mean, square)


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
    reference=reference,
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
