"""Probes of the padding mask, and of the softmax that uses it."""

from glassformer.tools.learn.holes import Hole, axis, ids, mask
from glassformer.tools.learn.situations import ELSEWHERE, IDS, MASKS, PADDING, SIZES

PADDED = Hole("padding_mask", "mask", tokens=ids("length", 10, "pad"), pad=axis)
SOFTMAX = Hole(
    "masked_softmax", "weights", scores="batch 1 q_len k_len", mask=mask("q_len", "k_len")
)
HUGE = Hole(
    "masked_softmax",
    lambda weights, _: {"weights": weights.float()},  # a logarithm has no more digits there
    scores=axis,
    mask=axis,
).example(scores=[[-2e9, -2e9 - 1, 3e9]], mask=[[True, True, False]])
PROBES = (
    PADDED.probes(
        PADDED.example(tokens=[[5, 6, 0]], pad=0),
        **IDS,
        device=ELSEWHERE,
        pad=(0, 9, 4),
        length=(5, 1, 1100),
        padding=PADDING,
    ),
    SOFTMAX.probes(
        SOFTMAX.example(scores=[[1.0, 2.0, 3.0]], mask=[[True, True, False]]),
        SOFTMAX.example(scores=[[-3e4, -3e4 - 1, 3e4]], mask=[[True, True, False]]),
        HUGE,
        q_len=(5, 1),
        k_len=(7, 1, 1100),
        mask=MASKS,
        size=SIZES,
    ),
)
