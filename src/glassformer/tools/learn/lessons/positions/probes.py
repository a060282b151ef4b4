"""Probes of the sinusoids, and of their sum with the embeddings."""

from typing import Any

import torch

from glassformer import sinusoidal_positions
from glassformer.tools.learn.check import Solution
from glassformer.tools.learn.holes import Hole, axis
from glassformer.tools.learn.inputs import Known
from glassformer.tools.learn.situations import AXES, RETYPED, SIZES, Situation


def far_position(solution: Solution) -> dict[str, Any]:
    """length 2, d_model 14, offset 1,000,000"""
    torch.set_default_dtype(torch.float32)  # as in a translator; reset after the probe
    rows = torch.as_tensor(solution.sinusoidal_positions(2, 14, offset=1_000_000))
    right = sinusoidal_positions(2, 14, offset=1_000_000)
    if rows.shape != right.shape:
        return {"table": rows}
    is_far = not (rows - right).abs().max() < 1e-3
    return {"table": right, "At offset 1,000,000 the table is off by more than 0.001": is_far}


def odd_width(solution: Solution) -> dict[str, Any]:
    """length 2, d_model 5, which is odd"""
    try:
        solution.sinusoidal_positions(2, 5)
    except NotImplementedError:
        raise
    except Exception:
        return {"An odd d_model, 5, must raise an error": False}
    return {"An odd d_model, 5, must raise an error": True}


def encoding(solution: Solution, s: Situation) -> Any:
    encoding = s.module(lambda: solution.PositionalEncoding(6, max_length=1200))
    encoding.dropout = Known(lambda x: x * (2 * (torch.arange(6) % 2)) if s.dropout else x)
    return encoding


SINUSOIDS = Hole(
    "sinusoidal_positions", "table", options=("layout", "offset"), length=axis, d_model=axis
)
ADDED = Hole(
    "PositionalEncoding.forward",
    "output",
    encoding,
    options=("start",),
    embedded="batch length 6",
)
PROBES = (
    SINUSOIDS.probes(
        SINUSOIDS.example(length=2, d_model=4),
        far_position,
        odd_width,
        length=(5, 1, 1100),
        d_model=(14, 2, 4),
        layout=("", "interleaved", "halves"),
        offset=("", 3, 7),
    ),
    ADDED.probes(
        length=(5, 1, 1100),
        start=("", 4, 2),
        asked=(*AXES["asked"], RETYPED),
        size=SIZES,
        dropout=("", "a dropout that drops the columns 0, 2 and 4"),
    ),
)
