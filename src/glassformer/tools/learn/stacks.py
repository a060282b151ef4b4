"""The blocks and stacks of the lessons on the encoder and the decoder."""

from functools import partial
from typing import Any, get_args

from torch import Tensor, nn

from glassformer.config import Norm
from glassformer.tools.learn.check import Solution
from glassformer.tools.learn.holes import Hole, Input
from glassformer.tools.learn.inputs import Known
from glassformer.tools.learn.situations import NONE, Situation

__all__ = ["BLOCK", "STACK", "holes"]

_TOWER: dict[str, Any] = {
    "batch": (2, 1),
    "type": ("float64",),
    "strides": NONE,
    "norm": get_args(Norm),
}
BLOCK = _TOWER | {"dropout": ("", "a factor of 3 for each dropout")}
STACK = _TOWER | {"blocks": (2, 1, 3)}


def holes(stack: str, block: str, options: tuple[str, ...], **inputs: Input) -> tuple[Hole, Hole]:
    """The holes of a block and of its stack, which have the same inputs."""

    def made(solution: Solution, s: Situation) -> Any:
        sizes = s.axes.get("sizes", (6, 3, 7))
        made = s.module(lambda: getattr(solution, block)(*sizes, norm=s.norm))
        for part in made.children():
            part.dropout = Known(lambda x: (3 if s.axes.get("dropout") else 1) * x)
        return made

    def stacked(solution: Solution, s: Situation) -> Any:
        norm = nn.LayerNorm(6) if s.norm == "pre" else None
        blocks = [Known(partial(_quick, number, [*inputs][1:])) for number in range(s.blocks)]
        return s.module(lambda: getattr(solution, stack)(blocks, final_norm=norm))

    return (
        Hole(f"{block}.forward", "output", made, options=options, **inputs),
        Hole(f"{stack}.forward", "output", stacked, options=options, **inputs),
    )


def _quick(
    number: int, names: list[str], x: Tensor, *inputs: Tensor | None, **others: Tensor | None
) -> Tensor:
    """A block that is quick, and depends on all its inputs, which have ``names``."""
    given = dict(zip(names, inputs, strict=False)) | others
    for place, name in enumerate(names, number + 2):
        other = given.get(name)
        if name.endswith("mask"):
            x = x * (place if other is None else other.to(x).mean())
        elif other is not None:
            x = x + place * other.mean(dim=1, keepdim=True)
    return x + number
