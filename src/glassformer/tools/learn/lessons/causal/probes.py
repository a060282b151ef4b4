"""Probes of the decoder's masks, and of the shift of its input."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.tools.learn.check import Check, Evidence, Probe, Results, Solution, probe
from glassformer.tools.learn.inputs import given, picks


def _triangle(length: int) -> Probe:
    def triangle(solution: Solution) -> dict[str, Any]:
        mask = solution.subsequent_mask(length)
        return {"mask": mask, "mask is a tensor": isinstance(mask, Tensor)}

    return probe(f"length {length}", triangle)


def long(solution: Solution) -> dict[str, Any]:
    """length 300"""
    mask = torch.as_tensor(solution.subsequent_mask(300))
    return {"number of keys of each query": mask.sum(-1), "keys of the last query": mask[-1]}


def _masked(tokens: list[list[int]], pad: int) -> Probe:
    """A probe of the mask, expanded to all axes, because a mask that broadcasts is right too."""
    whole = (len(tokens), 1, len(tokens[0]), len(tokens[0]))

    def masked(solution: Solution) -> dict[str, Any]:
        mask = solution.target_mask(given(tokens), pad)
        if isinstance(mask, Tensor) and mask.dim() in (2, 4):
            sizes = zip(reversed(mask.shape), reversed(whole), strict=False)
            mask = mask.expand(whole) if all(size in (1, want) for size, want in sizes) else mask
        return {"mask": mask}

    return probe(f"tokens {tokens}, pad {pad}", masked)


def two_targets(solution: Solution) -> dict[str, Any]:
    """labels [[7, 8, 3], [9, 3, 0]], bos 2"""
    return {"input": solution.shift(given([[7, 8, 3], [9, 3, 0]]), 2)}


def another_start(solution: Solution) -> dict[str, Any]:
    """labels (3, 7), bos 5"""
    return {"input": solution.shift(given(picks(3, 7, below=100) + 10), 5)}


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
    values = results["two_targets"]["input"]
    if values.shape != (2, 3):
        return None
    for step, label in enumerate((7, 8, 3)):
        if values[0, step] == label:
            return f"At step {step} the decoder reads {label}, and has to predict {label}."
    return None


def first_is_not_bos(results: Results) -> str | None:
    first = results["two_targets"]["input"][0, 0]
    return None if first == 2 else f"With bos 2, your first input is {first}."


TWO_SENTENCES = _masked([[2, 7, 0], [2, 8, 9]], 0)
CHECK = Check(
    probes={
        "subsequent_mask": (_triangle(3), _triangle(7), long),
        "target_mask": (
            TWO_SENTENCES,
            _masked([[8, 1, 4, 4, 2], [0, 6, 5, 9, 9], [7, 3, 1, 1, 8]], 9),
            _masked([[9, 9, 5, 6, 7], [4, 5, 6, 7, 8]], 9),
        ),
        "shift": (two_targets, another_start),
    },
    laws={
        "No position attends to a later one.": _pair(
            lambda mask: np.triu(mask, 1), "With length {}, position {} may attend to position {}."
        ),
        "Each position attends to itself.": _pair(
            lambda mask: ~mask & np.eye(len(mask), dtype=bool),
            "With length {}, position {} may not attend to itself.",
        ),
        "No position attends to padding.": padding_visible,
        "The decoder does not read the label that it has to predict.": answer_is_read,
        "The decoder's input begins with bos.": first_is_not_bos,
    },
)
