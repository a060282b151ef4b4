"""Probes of grouped queries."""

from glassformer.tools.learn.attention_probes import ATTENDED, attention_hole
from glassformer.tools.learn.holes import Hole, axis
from glassformer.tools.learn.situations import WIDE

ATTENTION = attention_hole("grouped_attention", groups="groups")
POOLED = Hole("pooled", "pooled", weight="12 5", heads=axis, groups=axis)
GROUPS = (2, 1, 3, 6)
PROBES = (
    ATTENTION.probes(
        ATTENTION.example(
            query=[[[[1.0]], [[1.0]], [[1.0]], [[1.0]]]],
            key=[[[[1.0]], [[1.0]]]],
            value=[[[[0.0]], [[1.0]]]],
        ),
        **ATTENDED,
        groups=GROUPS,
    ),
    POOLED.probes(
        POOLED.example(weight=[[1.0], [3.0], [10.0], [20.0]], heads=4, groups=2),
        POOLED.example(weight=[1.0, 3.0, 10.0, 20.0, 5.0, 7.0, 9.0, 13.0], heads=4, groups=2),
        batch=(1,),
        type=WIDE,
        heads=(6,),
        groups=GROUPS,
    ),
)
