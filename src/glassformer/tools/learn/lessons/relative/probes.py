"""Probes of relative positions."""

import math
from typing import Any

from glassformer.tools.learn.attention_probes import ATTENDED, attention_hole, moved, position_laws
from glassformer.tools.learn.check import Check
from glassformer.tools.learn.holes import Hole, axis
from glassformer.tools.learn.inputs import numbers


def attend(solution: Any, *inputs: Any) -> Any:
    *tensors, mask = inputs
    return solution.relative_attention(*tensors, numbers(5, 14, seed=3, name="table"), mask)


DISTANCES = Hole("clipped_distances", "rows", q_len=axis, k_len=axis, most=axis)
ATTENTION = attention_hole("relative_attention", table="rows 14")
MOVED = moved(attend)
CHECK = Check(
    probes={
        "clipped_distances": (
            DISTANCES.example(q_len=2, k_len=3, most=1),
            *DISTANCES.situations(q_len=(2, 1, 5), k_len=(7, 5, 11), most=(2, 0, 1, 11)),
        ),
        "relative_attention": (
            ATTENTION.example(
                query=[[[[1.0]]]],
                key=[[[[0.0], [0.0]]]],
                value=[[[[10.0], [20.0]]]],
                table=[[0.0], [math.log(3)], [5.0]],
            ),
            *MOVED,
            *ATTENTION.situations(**ATTENDED, rows=(5, 1, 3, 25)),
        ),
    },
    laws=position_laws(MOVED),
)
