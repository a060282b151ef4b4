"""Probes of scaled dot-product attention."""

from glassformer.tools.learn.holes import Hole, mask
from glassformer.tools.learn.situations import MASKS, SIZES

ATTENTION = Hole(
    "scaled_dot_product_attention",
    "output, weights",
    query="batch 3 q_len 11",
    key="batch 3 k_len 11",
    value="batch 3 k_len 13",
    mask=mask("q_len", "k_len", 3),
)
ONE_QUERY = ATTENTION.example(
    query=[[3.0, 1.0]], key=[[1.0, 0.0], [0.0, 1.0]], value=[[10.0], [20.0]]
)
LARGE_SCORES = ATTENTION.example(
    query=[[300.0, 100.0]],
    key=[[-300.0, 0.0], [-400.0, 0.0], [1.0, 1.0]],
    value=[[10.0], [20.0], [30.0]],
    mask=[[True, True, False]],
)
PROBES = (
    ATTENTION.probes(
        ONE_QUERY, LARGE_SCORES, q_len=(5, 1, 7), k_len=(7, 1, 131), mask=MASKS, size=SIZES
    ),
)
