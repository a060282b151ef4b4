"""Probes of the learning rate's schedule, and of one update of Adam."""

from typing import Any

import numpy as np
from torch import Tensor

from glassformer.tools.learn.check import Check, Probe, Results, Solution, listed, probe, unpacked
from glassformer.tools.learn.inputs import given
from glassformer.tools.learn.lessons.schedule.plain import AdamState
from glassformer.tools.learn.situations import (
    ELSEWHERE,
    NO_NUMBERS,
    NONE,
    SIZES,
    Situation,
    situations,
)


def _rates(*updates: int, **settings: float) -> Probe:
    def rates(solution: Solution) -> dict[str, Any]:
        rates = [float(solution.noam_schedule(update, **settings)) for update in updates]
        return {"rates": np.array(rates)}

    return probe(f"updates {', '.join(map(str, updates))}; {listed(**settings)}", rates)


def _first_step(gradient: float) -> Probe:
    def step(solution: Solution) -> dict[str, Any]:
        state = 0, given([0.0], "mean"), given([0.0], "square")
        return _stepped(solution, given([1.0], "weight"), given([gradient], "gradient"), state)

    return probe(f"weight [1], gradient [{gradient}], rate 0.1, state (0, [0], [0])", step)


def rate(solution: Solution, s: Situation) -> dict[str, Any]:
    settings = {"warmup": s.warmup, "factor": s.factor}
    settings = {name: value for name, value in settings.items() if value}
    return {"rate": float(solution.noam_schedule(s.update, d_model=s.d_model, **settings))}


def stepped(solution: Solution, s: Situation) -> dict[str, Any]:
    weight, gradient, mean, square = (
        s.numbers(name, *(s.batch, 3)[: s.axes_of_weight])
        for name in ("weight", "gradient", "mean", "square")
    )
    state = s.updates, given(mean, "mean"), given(square.abs(), "square")
    settings = {"betas": (0.5, 0.8), "epsilon": 0.1} if s.settings else {}
    return _stepped(solution, weight, gradient, state, **settings)


def _stepped(
    solution: Solution, weight: Tensor, gradient: Tensor, state: AdamState, **settings: Any
) -> dict[str, Any]:
    answer = solution.adam_step(weight, gradient, state=state, rate=0.1, **settings)
    weight, state = unpacked(answer, "weight", "state")
    updates, mean, square = unpacked(state, "updates", "mean", "square")
    return {"weight": weight, "mean": mean, "square": square, "updates": int(updates)}


def highest(results: Results) -> str | None:
    update = int(np.argmax(results[CURVE.__name__]["rates"])) + 2
    return None if update == 7 else f"With a warm-up of 7, your rate is highest at update {update}."


def straight(results: Results) -> str | None:
    rates = results[CURVE.__name__]["rates"]
    if abs(rates[2] - 2 * rates[0]) < 1e-9:
        return None
    return f"From update 2 to 4 of the warm-up, {rates[0]:.3g} becomes {rates[2]:.3g}."


def falling(results: Results) -> str | None:
    rates = results[EXAMPLE.__name__]["rates"]
    if abs(rates[0] - 2 * rates[1]) < 1e-9:
        return None
    return f"From update 100 to 400, after the warm-up, {rates[0]:.3g} becomes {rates[1]:.3g}."


def first_size(results: Results) -> str | None:
    step = 1 - float(results[FOUR.__name__]["weight"].flat[0])
    return None if abs(step - 0.1) < 1e-6 else f"With a rate of 0.1, your first step is {step:.4g}."


def scale(results: Results) -> str | None:
    step, large = (
        1 - float(results[each.__name__]["weight"].flat[0]) for each in (FOUR, THOUSANDS)
    )
    if abs(large - step) < 1e-6:
        return None
    return f"With a gradient of 4 your step is {step:.4g}; with one of 4000 it is {large:.4g}."


EXAMPLE = _rates(100, 400, 10, d_model=4, warmup=100)
CURVE = _rates(*range(2, 21), d_model=11, warmup=7)
FOUR, THOUSANDS = _first_step(4.0), _first_step(4000.0)
CHECK = Check(
    probes={
        "noam_schedule": (
            *(EXAMPLE, CURVE),
            *situations(
                "a rate",
                rate,
                **NO_NUMBERS | {"batch": (1,), "layout": NONE},
                update=(4000, 1, 2, 6, 7, 8, 100_000),
                d_model=(512, 4, 11),
                warmup=(0, 1, 7, 100),
                factor=(0, 2.5),
            ),
        ),
        "adam_step": (
            FOUR,
            THOUSANDS,
            _first_step(0.0),
            *situations(
                "a step",
                stepped,
                gradients=("no gradient is wanted",),
                mode=NONE,
                axes_of_weight=(2, 1),
                updates=(6, 0, 1000),
                size=SIZES,
                settings=("", "betas (0.5, 0.8), epsilon 0.1"),
                device=ELSEWHERE,
            ),
        ),
    },
    laws={
        "The rate is highest at the end of the warm-up.": highest,
        "In the warm-up, twice the update has twice the rate.": straight,
        "After the warm-up, four times the update has half the rate.": falling,
        "The first step of Adam is one rate.": first_size,
        "The size of the gradients does not matter to Adam.": scale,
    },
)
