"""Probes of rotary positions."""

from typing import Any

import torch

from glassformer.tools.learn.attention_probes import ATTENDED, attention_hole
from glassformer.tools.learn.holes import Hole, axis
from glassformer.tools.learn.inputs import given
from glassformer.tools.learn.situations import SIZES, WIDE, Situation


def positions(s: Situation, name: str) -> Any:
    return given(torch.tensor(s.positions) + s.earlier, name)


def angles(s: Situation, name: str) -> Any:
    """Angles in float64, whatever the type of the features."""
    return s.numbers(name, "length", 7).double()


ANGLES = Hole(
    "rotary_angles",
    lambda angles, _: {"angles": angles.double()},  # float32 angles are far from those of float64
    positions=positions,
    d_head=axis,
)
ROTATED = Hole(
    "rotated",
    lambda output, _: {"output": output, "type of your output": str(output.dtype)},
    x="batch 3 length 14",
    angles=angles,
)
ATTENTION = attention_hole("rotary_attention")
PROBES = (
    ANGLES.probes(
        ANGLES.example(positions=[0, 3], d_head=4),
        type=WIDE,
        positions=((13, 2, 7), (5,), (1_000_000, 1_000_001)),
        d_head=(14, 2),
    ),
    ROTATED.probes(
        ROTATED.example(x=[[1.0, 2.0, 3.0, 4.0]], angles=[[0.0, 1.5708]]),
        length=(5, 1),
        size=SIZES,
    ),
    ATTENTION.probes(
        ATTENTION.example(
            query=[[[[1.0, 0.0]]]],
            key=[[[[1.0, 0.0], [1.0, 0.0]]]],
            value=[[[[10.0], [20.0]]]],
        ),
        **ATTENDED,
    ),
)
