"""Probes of relative positions."""

from glassformer.tools.learn.attention_probes import ATTENDED, attention_hole
from glassformer.tools.learn.holes import Hole, axis

DISTANCES = Hole("clipped_distances", "rows", q_len=axis, k_len=axis, most=axis)
ATTENTION = attention_hole("relative_attention", table="rows 14")
PROBES = (
    DISTANCES.probes(
        DISTANCES.example(q_len=2, k_len=3, most=1),
        q_len=(2, 1, 5),
        k_len=(7, 5, 11),
        most=(2, 0, 1, 11),
    ),
    ATTENTION.probes(
        ATTENTION.example(
            query=[[[[1.0]]]],
            key=[[[[0.0], [0.0]]]],
            value=[[[[10.0], [20.0]]]],
            table=[[0.0], [1.0986], [5.0]],
        ),
        **ATTENDED,
        rows=(5, 1, 3, 25),
    ),
)
