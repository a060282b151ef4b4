"""Probes of the sinusoids, and of their sum with the embeddings."""

from typing import Any

import numpy as np
import torch
from torch import nn

from glassformer import sinusoidal_positions
from glassformer.tools.learn.check import (
    Check,
    Probe,
    Results,
    Solution,
    listed,
    probe,
)
from glassformer.tools.learn.inputs import Known, numbers, watched
from glassformer.tools.learn.situations import NO_NUMBERS, NONE, SIZES, Situation, situations


def _table(length: int, d_model: int, **options: Any) -> Probe:
    return probe(
        listed(length=length, d_model=d_model, **options),
        lambda solution: {"table": solution.sinusoidal_positions(length, d_model, **options)},
    )


def table(solution: Solution, s: Situation) -> dict[str, Any]:
    options = {"layout": s.order, "offset": s.offset}
    options = {name: value for name, value in options.items() if value}
    return {"table": solution.sinusoidal_positions(s.length, s.d_model, **options)}


def added(solution: Solution, s: Situation) -> dict[str, Any]:
    encoding = s.module(lambda: solution.PositionalEncoding(6, max_length=1200))
    encoding.dropout = nn.Identity()
    embedded = s.numbers("embedded", s.batch, s.length, 6)
    return {"output": encoding(embedded, **({"start": s.start} if s.start else {}))}


def _precise(offset: int) -> Probe:
    def precise(solution: Solution) -> dict[str, Any]:
        torch.set_default_dtype(torch.float32)  # as in a translator; reset after the probe
        rows = torch.as_tensor(solution.sinusoidal_positions(2, 14, offset=offset))
        right = sinusoidal_positions(2, 14, offset=offset)
        if rows.shape != right.shape:
            return {"table": rows, far: True}
        return {"table": right, far: not (rows - right).abs().max() < 1e-3}

    far = f"At offset {offset:,} the table is off by more than 0.001"
    return probe(f"length 2, d_model 14, offset {offset:,}", precise)


def odd_width(solution: Solution) -> dict[str, Any]:
    """length 2, d_model 5, which is odd"""
    try:
        solution.sinusoidal_positions(2, 5)
    except NotImplementedError:
        raise
    except Exception:
        return {"An odd d_model, 5, must raise an error": False}
    return {"An odd d_model, 5, must raise an error": True}


def with_dropout(solution: Solution) -> dict[str, Any]:
    """embedded (3, 5, 14), and a dropout that drops the columns 0, 2, 4, …"""
    encoding = solution.PositionalEncoding(14, max_length=11).double()
    encoding.table.data.copy_(numbers(11, 14, seed=1, name="the table").detach())
    watched("the table", encoding.table)
    encoding.dropout = Known(lambda x: x * (2 * (torch.arange(14) % 2)))
    return {
        "output": encoding(numbers(3, 5, 14, name="embedded")),
        "The optimiser trains your table": any(True for _ in encoding.parameters()),
    }


def moved(results: Results) -> str | None:
    """Evidence if row p of a table with an offset is not row p + offset of a table without."""
    whole, later = results[FIVE_ROWS.__name__]["table"], results[OFFSET.__name__]["table"]
    if whole.shape != later.shape:
        return f"With offset 3 the table has shape {later.shape}, without {whole.shape}."
    if np.allclose(whole[3:], later[:2], atol=1e-4):
        return None
    pair = f"{later[0, 0]:.3f}", f"{whole[3, 0]:.3f}"
    return f"Row 0 with offset 3 begins with {pair[0]}, row 3 without offset with {pair[1]}."


def unit_pairs(results: Results) -> str | None:
    """Evidence with a row in which the squares of some sine and cosine do not sum to 1."""
    for values in results.values():
        for row, features in enumerate(values.get("table", ())):
            total, right = (features**2).sum(), features.size / 2
            if not abs(total - right) < 1e-3:
                return f"The squares of row {row} sum to {total:.3f}, not {right:.0f}."
    return None


FIVE_ROWS, OFFSET = _table(5, 14), _table(5, 14, offset=3)
CHECK = Check(
    probes={
        "sinusoidal_positions": (
            *(_table(2, 4), FIVE_ROWS, OFFSET, _precise(256), _precise(1_000_000), odd_width),
            *situations(
                "table",
                table,
                **NO_NUMBERS | {"batch": (1,), "layout": NONE},
                length=(5, 1, 1100),
                d_model=(14, 2, 4),
                order=("", "interleaved", "halves"),
                offset=(0, 3, 7),
            ),
        ),
        "PositionalEncoding.forward": (
            with_dropout,
            *situations("embedded", added, length=(5, 1, 1100), start=(0, 4, 2), size=SIZES),
        ),
    },
    laws={
        "Row p with an offset is row p + offset without.": moved,
        "In each pair sin² + cos² is 1.": unit_pairs,
    },
)
