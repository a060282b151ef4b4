"""One query of one head, as a sum to follow by hand: equation 1 with a trace's own numbers."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic_core import to_json

from glassformer.errors import UsageError
from glassformer.inspection.trace.array_codec import Packed
from glassformer.inspection.trace.records import AttentionPart
from glassformer.inspection.trace.schema import Trace

__all__ = ["WorkedSum", "worked_sum"]


@dataclass(frozen=True)
class WorkedSum:
    r"""From :math:`q \cdot k` to the weighted values, all numbers on the way."""

    query: list[float]
    """q, (d_head)"""
    keys: list[list[float]]
    """The k of each key, (k_len, d_head)"""
    products: list[float]
    """q · k for each key"""
    scores: list[float]
    """Over sqrt(d_head)"""
    allowed: list[bool]
    """The mask's row"""
    exponentials: list[float]
    """exp(score - the largest allowed score); 0 where the mask forbids"""
    weights: list[float]
    """Over their sum"""
    values: list[list[float]]
    """The v of each key, (k_len, d_head)"""
    output: list[float]
    """The sum of weight * v: what this head hands to the output projection."""

    def to_json(self) -> str:
        """As one line of JSON."""
        return to_json(self).decode()


def worked_sum(trace: Trace, part: AttentionPart, layer: int, head: int, query: int) -> WorkedSum:
    """The sum of the ``query``-th row of a head; UsageError where the trace has it not."""
    found = [one for one in trace.attention if (one.part, one.layer) == (part, layer)]
    if not found or found[0].query is None or found[0].key is None or found[0].value is None:
        raise UsageError(f"the trace holds no vectors of {part} attention in layer {layer}")
    if part != "decoder" and trace.bounds.source_pieces > len(trace.source.pieces):
        raise UsageError("the trace leaves out pieces of the source, over which the sum goes too")
    rows = _head(found[0].query, head)
    if not 0 <= query < len(rows):
        raise UsageError(f"query {query}: expected 0 to {len(rows) - 1}")
    keys, values = _head(found[0].key, head), _head(found[0].value, head)
    allowed = trace.masks.target[query] if part == "decoder" else trace.masks.source
    products = keys @ rows[query]
    scores = products / math.sqrt(rows.shape[1])
    masked = np.where(allowed, scores, -np.inf)
    exponentials = np.exp(masked - masked.max())
    weights = exponentials / exponentials.sum()
    return WorkedSum(
        query=rows[query].tolist(),
        keys=keys.tolist(),
        products=products.tolist(),
        scores=scores.tolist(),
        allowed=list(allowed),
        exponentials=exponentials.tolist(),
        weights=weights.tolist(),
        values=values.tolist(),
        output=(weights @ values).tolist(),
    )


def _head(packed: Packed, head: int) -> npt.NDArray[np.float64]:
    if not 0 <= head < packed.shape[0]:
        raise UsageError(f"head {head}: expected 0 to {packed.shape[0] - 1}")
    return packed.array()[head].astype(np.float64)
