"""Probes of the decoder's masks, and of the shift of its input."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from glassformer.learn.check import Check, Results, Solution, picks

__all__ = ["CHECK"]


def three(solution: Solution) -> dict[str, Any]:
    """length 3"""
    return _mask(solution.subsequent_mask(3))


def seven(solution: Solution) -> dict[str, Any]:
    """length 7"""
    return _mask(solution.subsequent_mask(7))


def long(solution: Solution) -> dict[str, Any]:
    """length 300"""
    mask = torch.as_tensor(solution.subsequent_mask(300))
    return {"number of keys of each query": mask.sum(-1), "keys of the last query": mask[-1]}


def two_sentences(solution: Solution) -> dict[str, Any]:
    """tokens [[2, 7, 0], [2, 8, 9]], pad 0"""
    return _target(solution, torch.tensor([[2, 7, 0], [2, 8, 9]]), 0)


def another_padding(solution: Solution) -> dict[str, Any]:
    """tokens (3, 5) with two paddings at the end of the second sentence, pad 9"""
    tokens = picks(3, 5, below=9)
    tokens[1, 3:] = 9
    return _target(solution, tokens, 9)


def padding_first(solution: Solution) -> dict[str, Any]:
    """tokens [[9, 9, 5, 6, 7], [4, 5, 6, 7, 8]], pad 9"""
    return _target(solution, torch.tensor([[9, 9, 5, 6, 7], [4, 5, 6, 7, 8]]), 9)


def two_targets(solution: Solution) -> dict[str, Any]:
    """labels [[7, 8, 3], [9, 3, 0]], bos 2"""
    return _shifted(solution, torch.tensor([[7, 8, 3], [9, 3, 0]]), 2)


def another_start(solution: Solution) -> dict[str, Any]:
    """labels (3, 7), bos 5"""
    return _shifted(solution, picks(3, 7, below=100) + 10, 5)


def _mask(mask: object) -> dict[str, Any]:
    return {"mask": mask, "mask is a tensor": isinstance(mask, Tensor)}


def _target(solution: Solution, tokens: Tensor, pad: int) -> dict[str, Any]:
    """The mask, spread over all its axes: one that broadcasts to the same is as good."""
    mask = solution.target_mask(tokens.clone(), pad)
    batch, length = tokens.shape
    whole = (batch, 1, length, length)
    if isinstance(mask, Tensor) and mask.dim() in (2, 4):
        sizes = zip(reversed(mask.shape), reversed(whole), strict=False)
        mask = mask.expand(whole) if all(size in (1, want) for size, want in sizes) else mask
    return {"mask": mask}


def _shifted(solution: Solution, labels: Tensor, bos: int) -> dict[str, Any]:
    given = labels.clone()
    shifted = solution.shift(given, bos)
    return {"input": shifted, "labels are changed": not torch.equal(given, labels)}


def future(results: Results) -> str | None:
    """The first position that may attend to a later one."""
    return _pair(results, lambda row, column: column > row, visible=True)


def itself(results: Results) -> str | None:
    """The first position of a mask without padding that may not attend to itself."""
    lengths: Results = {name: results[name] for name in ("three", "seven") if name in results}
    return _pair(lengths, lambda row, column: column == row, visible=False)


def _pair(results: Results, chosen: Callable[[int, int], bool], *, visible: bool) -> str | None:
    for values in results.values():
        mask = values.get("mask")
        if mask is None or mask.dtype != bool or mask.ndim < 2:
            continue
        rows = mask.reshape(-1, *mask.shape[-2:])[-1]
        for row, column in zip(*(rows == visible).nonzero(), strict=True):
            if chosen(row, column):
                may = "may" if visible else "may not"
                other = "itself" if row == column else f"position {column}"
                return f"With length {len(rows)}, position {row} {may} attend to {other}."
    return None


def padding_visible(results: Results) -> str | None:
    """The padding of the first sentence of ``two_sentences``, if a query may attend to it."""
    mask = results.get("two_sentences", {}).get("mask")
    if mask is None or mask.shape != (2, 1, 3, 3) or mask.dtype != bool:
        return None
    rows = mask[0, 0, :, 2].nonzero()[0]
    return f"Position {rows[0]} of [2, 7, 0] may attend to the padding." if rows.size else None


def answer_is_read(results: Results) -> str | None:
    """Where the decoder reads the very label that it has to predict."""
    values = results.get("two_targets", {}).get("input")
    if values is None or values.shape != (2, 3):
        return None
    labels = [[7, 8, 3], [9, 3, 0]]
    for step, label in enumerate(labels[0]):
        if values[0, step] == label:
            return f"At step {step} the decoder reads {label}, and has to predict {label}."
    return None


def first_is_not_bos(results: Results) -> str | None:
    values = results.get("two_targets", {}).get("input")
    if values is None or values.ndim != 2 or not values.size or values[0, 0] == 2:
        return None
    return f"With bos 2, your first input is {values[0, 0]}."


CHECK = Check(
    probes={
        "subsequent_mask": (three, seven, long),
        "target_mask": (two_sentences, another_padding, padding_first),
        "shift": (two_targets, another_start),
    },
    laws={
        "No position attends to a later one.": future,
        "Each position attends to itself.": itself,
        "No position attends to padding.": padding_visible,
        "The decoder does not read the label that it has to predict.": answer_is_read,
        "The decoder's input begins with bos.": first_is_not_bos,
    },
)
