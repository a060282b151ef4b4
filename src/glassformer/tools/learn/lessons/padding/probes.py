"""Probes of the padding mask, and of the softmax that uses it."""

from typing import Any

from glassformer.tools.learn.check import Check, measured, worst_sum
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
ONE_QUERY = SOFTMAX.example(scores=[[1.0, 2.0, 3.0]], mask=[[True, True, False]])
FAR = SOFTMAX.example(scores=[[-30_000.0, -30_001.0, 30_000.0]], mask=[[True, True, False]])


def hidden_weight(*values: dict[str, Any]) -> Any:
    """The weight of the hidden third key in the first probe in which it has some."""
    weights = [each["weights"].flat[2] for each in values]
    return next(filter(None, weights), 0)


CHECK = Check.of(
    PADDED.probes(
        PADDED.example(tokens=[[5, 6, 0]], pad=0),
        **IDS,
        device=ELSEWHERE,
        pad=(0, 9, 4),
        length=(5, 1, 1100),
        padding=PADDING,
    ),
    SOFTMAX.probes(
        ONE_QUERY,
        SOFTMAX.example(scores=[[1.0, 2.0]], mask=[[False, False]]),
        FAR,
        HUGE,
        q_len=(5, 1),
        k_len=(7, 1, 1100),
        mask=MASKS,
        size=SIZES,
    ),
    laws={
        "A hidden key gets no weight.": measured(
            hidden_weight, 0, "The hidden third key gets {}.", ONE_QUERY, FAR, HUGE
        ),
        "The weights of each query sum to 1.": measured(
            worst_sum, 1, "The weights of a query sum to {}.", ONE_QUERY, FAR
        ),
    },
)
