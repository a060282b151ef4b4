"""Probes of the sinusoids, and of their sum with the embeddings."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glassformer import sinusoidal_positions
from glassformer.learn.check import Check, KnownDropout, Results, Solution, numbers

__all__ = ["CHECK"]


def two_rows(solution: Solution) -> dict[str, Any]:
    """length 2, d_model 4"""
    return {"table": solution.sinusoidal_positions(2, 4)}


def table(solution: Solution) -> dict[str, Any]:
    """length 5, d_model 14"""
    return {"table": solution.sinusoidal_positions(5, 14)}


def halves(solution: Solution) -> dict[str, Any]:
    """length 5, d_model 14, layout "halves\""""
    return {"table": solution.sinusoidal_positions(5, 14, layout="halves")}


def offset(solution: Solution) -> dict[str, Any]:
    """length 5, d_model 14, offset 3"""
    return {"table": solution.sinusoidal_positions(5, 14, offset=3)}


def middle(solution: Solution) -> dict[str, Any]:
    """length 2, d_model 14, offset 256"""
    return _precision(solution, 256)


def far(solution: Solution) -> dict[str, Any]:
    """length 2, d_model 14, offset 1,000,000"""
    return _precision(solution, 1_000_000)


def _precision(solution: Solution, offset: int) -> dict[str, Any]:
    torch.set_default_dtype(torch.float32)  # a translator's; until the probe is over
    rows = torch.as_tensor(solution.sinusoidal_positions(2, 14, offset=offset))
    right = sinusoidal_positions(2, 14, offset=offset)
    if rows.shape != right.shape:
        return {"table": rows, "precision of 0.001": False}
    return {"table": right, "precision of 0.001": bool((rows - right).abs().max() < 1e-3)}


def odd_width(solution: Solution) -> dict[str, Any]:
    """length 2, d_model 5, which is odd"""
    try:
        solution.sinusoidal_positions(2, 5)
    except NotImplementedError:
        raise
    except Exception:
        return {"error for d_model 5": True}
    return {"error for d_model 5": False}


def first_tokens(solution: Solution) -> dict[str, Any]:
    """embedded (3, 5, 14), a table (11, 14) of other numbers, no dropout"""
    return _encoded(solution, numbers(3, 5, 14))


def later_tokens(solution: Solution) -> dict[str, Any]:
    """embedded (3, 5, 14), start 4"""
    return _encoded(solution, numbers(3, 5, 14), start=4)


def cached_step(solution: Solution) -> dict[str, Any]:
    """the third token alone: embedded (3, 1, 14), start 2"""
    return _encoded(solution, numbers(3, 5, 14)[:, 2:3], start=2)


def with_dropout(solution: Solution) -> dict[str, Any]:
    """embedded (3, 5, 14), and a dropout that drops the columns 0, 2, 4, …"""
    return _encoded(solution, numbers(3, 5, 14), dropout=KnownDropout(2.0 * (torch.arange(14) % 2)))


def _encoded(
    solution: Solution, embedded: Tensor, *, start: int = 0, dropout: nn.Module | None = None
) -> dict[str, Any]:
    encoding = solution.PositionalEncoding(14, max_length=11).double()
    encoding.table.data.copy_(numbers(11, 14, seed=1))
    encoding.dropout = dropout or nn.Identity()
    before = embedded.clone()
    return {
        "output": encoding(embedded, start=start),
        "embedded is changed": not torch.equal(before, embedded),
        "the table is trained": any(True for _ in encoding.parameters()),
    }


def moved(results: Results) -> str | None:
    """Row p of a table with an offset is row p + offset of one without."""
    if "table" not in results or "offset" not in results:
        return None
    whole, later = results["table"]["table"], results["offset"]["table"]
    if whole.shape != later.shape:
        return f"With offset 3 the table has shape {later.shape}, without {whole.shape}."
    if np.allclose(whole[3:], later[:2], atol=1e-4):
        return None
    pair = f"{later[0, 0]:.3f}", f"{whole[3, 0]:.3f}"
    return f"Row 0 with offset 3 begins with {pair[0]}, row 3 without offset with {pair[1]}."


def unit_pairs(results: Results) -> str | None:
    """Sine and cosine of an angle have squares with the sum 1."""
    for probe in ("two_rows", "table", "halves"):
        for row, values in enumerate(results[probe]["table"] if probe in results else ()):
            total, right = (values**2).sum(), values.size / 2
            if not abs(total - right) < 1e-3:
                return f"The squares of row {row} sum to {total:.3f}, not {right:.0f}."
    return None


def step(results: Results) -> str | None:
    """A step gives the output that the whole sequence has there."""
    if "first_tokens" not in results or "cached_step" not in results:
        return None
    whole, alone = (results[probe]["output"] for probe in ("first_tokens", "cached_step"))
    if alone.shape[1] != 1:
        return f"One token goes in, {alone.shape[1]} come out."
    if whole.shape[1:] != (5, alone.shape[2]) or np.allclose(whole[:, 2:3], alone):
        return None
    change = abs(whole[:, 2:3] - alone).max()
    return (
        f"The third token alone, with start 2, differs from itself in the sequence by {change:.3g}."
    )


CHECK = Check(
    probes={
        "sinusoidal_positions": (two_rows, table, halves, offset, middle, far, odd_width),
        "PositionalEncoding.forward": (first_tokens, later_tokens, cached_step, with_dropout),
    },
    laws={
        "Row p with an offset is row p + offset without.": moved,
        "In each pair sin² + cos² is 1.": unit_pairs,
        "A token alone, with its start, is what it is in the whole sequence.": step,
    },
)
