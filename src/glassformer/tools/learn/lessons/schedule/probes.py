"""Probes of the learning rate's schedule, and of one update of Adam."""

from typing import Any

from glassformer.tools.learn.check import unpacked
from glassformer.tools.learn.holes import Hole, axis
from glassformer.tools.learn.inputs import given
from glassformer.tools.learn.situations import ELSEWHERE, SIZES, Situation


def state(s: Situation, _: str) -> object:
    mean, square = (s.numbers(name, "batch", 3) for name in ("mean", "square"))
    return s.updates, given(mean, "mean"), given(square.abs(), "square")


def updated(answer: Any, _: Situation) -> dict[str, Any]:
    weight, state = unpacked(answer, "weight", "state")
    updates, mean, square = unpacked(state, "updates", "mean", "square")
    return {"weight": weight, "mean": mean, "square": square, "updates": int(updates)}


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
PROBES = (
    RATE.probes(
        RATE.example(update=100, d_model=4, warmup=100),
        update=(4000, 1, 2, 6, 7, 8, 100_000),
        d_model=(512, 4, 11),
        warmup=("", 1, 7, 100),
        factor=("", 2.5),
    ),
    STEP.probes(
        STEP.example(
            "The first step of Adam is one rate, whatever the size of the gradient.",
            weight=[1.0],
            gradient=[4.0],
            state=(0, [0.0], [0.0]),
            rate=0.1,
        ),
        gradients=("no gradient is wanted",),
        updates=(6, 0, 1000),
        rate=(0.1, 3.0),
        size=SIZES,
        betas=("", (0.5, 0.8)),
        epsilon=("", 0.1),
        device=ELSEWHERE,
    ),
)
