"""Probes of the learning rate's schedule, and of one update of Adam."""

from typing import Any

import numpy as np

from glassformer.tools.learn.check import Check, Solution, Values, measured, unpacked
from glassformer.tools.learn.holes import Hole, axis
from glassformer.tools.learn.inputs import given
from glassformer.tools.learn.situations import ELSEWHERE, SIZES, Situation


def curve(solution: Solution) -> dict[str, Any]:
    """updates 1 to 28, d_model 11, warmup 7"""
    rates = [solution.noam_schedule(update, d_model=11, warmup=7) for update in range(1, 29)]
    return {"rates": np.array(rates, float)}


def state(s: Situation, _: str) -> object:
    mean, square = (s.numbers(name, "batch", 3) for name in ("mean", "square"))
    return s.updates, given(mean, "mean"), given(square.abs(), "square")


def updated(answer: Any, _: Situation) -> dict[str, Any]:
    weight, state = unpacked(answer, "weight", "state")
    updates, mean, square = unpacked(state, "updates", "mean", "square")
    return {"weight": weight, "mean": mean, "square": square, "updates": int(updates)}


def first_step(gradient: float) -> Any:
    return STEP.example(weight=[1.0], gradient=[gradient], state=(0, [0.0], [0.0]), rate=0.1)


def step(values: Values) -> Any:
    return 1 - values["weight"].flat[0]


RATE = Hole(
    "noam_schedule",
    lambda rate, _: {"rate": float(rate)},
    options=("d_model", "warmup", "factor"),
    update=axis,
)
STEP = Hole(
    "adam_step",
    updated,
    options=("state", "rate", "betas", "epsilon"),
    weight="batch 3",
    gradient="batch 3",
    state=state,
)
FOUR, THOUSANDS = first_step(4.0), first_step(4000.0)
CHECK = Check.of(
    RATE.probes(
        RATE.example(update=100, d_model=4, warmup=100),
        curve,
        update=(4000, 1, 2, 6, 7, 8, 100_000),
        d_model=(512, 4, 11),
        warmup=("", 1, 7, 100),
        factor=("", 2.5),
    ),
    STEP.probes(
        FOUR,
        THOUSANDS,
        gradients=("no gradient is wanted",),
        updates=(6, 0, 1000),
        rate=(0.1, 3.0),
        size=SIZES,
        betas=("", (0.5, 0.8)),
        epsilon=("", 0.1),
        device=ELSEWHERE,
    ),
    laws={
        "The rate is highest at the end of the warm-up.": measured(
            lambda values: values["rates"].argmax() + 1,
            7,
            "With a warm-up of 7, your rate is highest at update {}.",
            curve,
        ),
        "In the warm-up, twice the update has twice the rate.": measured(
            lambda values: values["rates"][3] / values["rates"][1],
            2,
            "From update 2 to 4 of the warm-up, the rate grows by a factor of {}.",
            curve,
        ),
        "After the warm-up, four times the update has half the rate.": measured(
            lambda values: values["rates"][27] / values["rates"][6],
            0.5,
            "From update 7, the end of the warm-up, to 28 the rate grows by a factor of {}.",
            curve,
        ),
        "The first step of Adam is one rate.": measured(
            step, 0.1, "With a rate of 0.1, your first step is {}.", FOUR
        ),
        "The size of the gradients does not matter to Adam.": measured(
            lambda small, large: step(large) / step(small),
            1,
            "With a gradient of 4000 your step is {} times the one with a gradient of 4.",
            *(FOUR, THOUSANDS),
        ),
    },
)
