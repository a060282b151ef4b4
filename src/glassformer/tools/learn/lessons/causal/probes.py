"""Probes of the decoder's masks, and of the shift of its input."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from glassformer.tools.learn.check import Check, Evidence, Probe, Results, Solution, probe
from glassformer.tools.learn.inputs import given
from glassformer.tools.learn.situations import (
    ELSEWHERE,
    IDS,
    NO_NUMBERS,
    NONE,
    PADDING,
    Situation,
    situations,
)


def _triangle(length: int) -> Probe:
    def triangle(solution: Solution) -> dict[str, Any]:
        mask = solution.subsequent_mask(length)
        return {"mask": mask, "Your mask is no tensor": not isinstance(mask, Tensor)}

    return probe(f"length {length}", triangle)


def _masked(tokens: list[list[int]], pad: int) -> Probe:
    """A probe of the mask, expanded to all axes, because a mask that broadcasts is right too."""
    return probe(
        f"tokens {tokens}, pad {pad}", lambda solution: _whole_mask(solution, given(tokens), pad)
    )


def _whole_mask(solution: Solution, tokens: Tensor, pad: int) -> dict[str, Any]:
    mask, (batch, length) = solution.target_mask(tokens, pad), tokens.shape
    if isinstance(mask, Tensor) and mask.dim() in (2, 4):
        whole = (batch, 1, length, length)
        sizes = zip(reversed(mask.shape), reversed(whole), strict=False)
        mask = mask.expand(whole) if all(size in (1, want) for size, want in sizes) else mask
    return {"mask": mask}


def triangle(solution: Solution, s: Situation) -> dict[str, Any]:
    return {"mask": solution.subsequent_mask(s.length)}


def masked(solution: Solution, s: Situation) -> dict[str, Any]:
    return _whole_mask(solution, s.tokens("tokens", s.length, 10, s.pad), s.pad)


def shifted(solution: Solution, s: Situation) -> dict[str, Any]:
    shifted = solution.shift(s.tokens("labels", s.length, 10, 0), s.bos)
    return {"input for the decoder": shifted, "type of the input": str(shifted.dtype)}


def two_targets(solution: Solution) -> dict[str, Any]:
    """labels [[7, 8, 3], [9, 3, 0]], bos 2"""
    return {"input for the decoder": solution.shift(given([[7, 8, 3], [9, 3, 0]]), 2)}


def _pair(wrong: Callable[[NDArray[Any]], NDArray[Any]], text: str) -> Evidence:
    """Evidence with the first query and key at which ``wrong`` finds a fault in a mask."""

    def evidence(results: Results) -> str | None:
        for values in results.values():
            mask = values.get("mask", np.zeros(0))
            if mask.dtype == bool and mask.ndim >= 2:
                rows = mask.reshape(-1, *mask.shape[-2:])[-1]
                for row, column in np.argwhere(wrong(rows)):
                    return text.format(len(rows), row, column)
        return None

    return evidence


def padding_visible(results: Results) -> str | None:
    """Evidence with a query in the first of ``TWO_SENTENCES`` that may attend to padding."""
    mask = results[TWO_SENTENCES.__name__]["mask"]
    if mask.shape != (2, 1, 3, 3) or mask.dtype != bool:
        return None
    rows = mask[0, 0, :, 2].nonzero()[0]
    return f"Position {rows[0]} of [2, 7, 0] may attend to the padding." if rows.size else None


def answer_is_read(results: Results) -> str | None:
    """Evidence with the first step at which the decoder reads the label that it has to predict."""
    values = results["two_targets"]["input for the decoder"]
    if values.shape != (2, 3):
        return None
    for step, label in enumerate((7, 8, 3)):
        if values[0, step] == label:
            return f"At step {step} the decoder reads {label}, and has to predict {label}."
    return None


def first_is_not_bos(results: Results) -> str | None:
    first = results["two_targets"]["input for the decoder"][0, 0]
    return None if first == 2 else f"With bos 2, your first input is {first}."


TWO_SENTENCES = _masked([[2, 7, 0], [2, 8, 9]], 0)
LENGTHS = (5, 1, 2, 1100)
CHECK = Check(
    probes={
        "subsequent_mask": (
            _triangle(3),
            *situations("mask", triangle, **NO_NUMBERS, batch=(1,), layout=NONE, length=LENGTHS),
        ),
        "target_mask": (
            TWO_SENTENCES,
            *situations(
                "target",
                masked,
                **NO_NUMBERS,
                **IDS,
                device=ELSEWHERE,
                pad=(0, 9, 4),
                length=(5, 1, 300),
                padding=PADDING,
            ),
        ),
        "shift": (
            two_targets,
            *situations(
                "labels",
                shifted,
                **NO_NUMBERS,
                **IDS,
                device=ELSEWHERE,
                bos=(2, 5),
                length=LENGTHS,
                padding=PADDING,
            ),
        ),
    },
    laws={
        "No position attends to a later one.": _pair(
            lambda mask: np.triu(mask, 1), "With length {}, position {} may attend to position {}."
        ),
        "Each position attends to itself.": _pair(
            lambda mask: ~mask & np.eye(len(mask), dtype=bool) & mask.any(0),  # no padding
            "With length {}, position {} may not attend to itself.",
        ),
        "No position attends to padding.": padding_visible,
        "The decoder does not read the label that it has to predict.": answer_is_read,
        "The decoder's input begins with bos.": first_is_not_bos,
    },
)
