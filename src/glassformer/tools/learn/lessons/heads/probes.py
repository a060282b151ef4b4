"""Probes of multi-head attention."""

from typing import Any

import numpy as np
import torch

from glassformer.tools.learn.check import Check, Results, Solution
from glassformer.tools.learn.situations import MASKS, Situation, situations

HEADS, WIDTH, D_MODEL = 3, 5, 15


def two_heads(solution: Solution) -> dict[str, Any]:
    """joint (1, 3, 4) with the numbers 0 to 11, 2 heads"""
    joint = torch.arange(12.0).reshape(1, 3, 4)
    return {"heads": solution.MultiHeadAttention(4, 2).split(joint)}


def merge_two(solution: Solution) -> dict[str, Any]:
    """heads (1, 2, 3, 2) with the numbers 0 to 11"""
    heads = torch.arange(12.0).reshape(1, 2, 3, 2)
    return {"joint": solution.MultiHeadAttention(4, 2).merge(heads)}


def keys_and_values(solution: Solution, s: Situation) -> dict[str, Any]:
    key, value = (s.numbers(name, s.batch, s.k_len, D_MODEL) for name in ("key", "value"))
    keys, values = _made(solution, s).project_keys_and_values(key, value)
    return {"keys": keys, "values": values}


def joined(solution: Solution, s: Situation) -> dict[str, Any]:
    heads = s.numbers("heads", s.batch, HEADS, s.k_len, WIDTH)
    return {"joint": _made(solution, s).merge(heads)}


def parted(solution: Solution, s: Situation) -> dict[str, Any]:
    joint = s.numbers("joint", s.batch, s.k_len, D_MODEL)
    return {"heads": _made(solution, s).split(joint)}


def attended(solution: Solution, s: Situation) -> dict[str, Any]:
    query = s.numbers("query", s.batch, s.q_len, D_MODEL)
    keys, values = (s.numbers(each, s.batch, HEADS, s.k_len, WIDTH) for each in ("keys", "values"))
    mask = s.mask(s.q_len, s.k_len, s.kind, heads=HEADS)
    return {"output": _made(solution, s).attend(query, keys, values, *mask)}


def called(solution: Solution, s: Situation) -> dict[str, Any]:
    """``forward`` with one, two or three inputs."""
    count = {"the query alone": 1, "the query and a key": 2}.get(s.inputs, 3)
    sizes = {"query": s.q_len, "key": s.k_len, "value": s.k_len}
    inputs = [s.numbers(name, s.batch, sizes[name], D_MODEL) for name in [*sizes][:count]]
    mask = s.mask(s.q_len, s.q_len if count == 1 else s.k_len, s.kind, heads=HEADS)
    return {"output": _made(solution, s)(*inputs, **dict(zip(("mask",), mask, strict=False)))}


def _made(solution: Solution, s: Situation) -> Any:
    return s.module(lambda: solution.MultiHeadAttention(D_MODEL, HEADS))


def own_features(results: Results) -> str | None:
    """Evidence with the first head and position whose features belong to another head."""
    heads = results["two_heads"]["heads"]
    if heads.shape != (1, 2, 3, 2):
        return None
    for head, position in np.ndindex(2, 3):
        features = [4 * position + place for place in range(4)]
        right, yours = features[2 * head :][:2], heads[0, head, position].astype(int).tolist()
        if yours != right:
            return (
                f"Position {position} has the features {features}; its head {head} of 2 should be"
                f" {right}, and is {yours}."
            )
    return None


LENGTHS = (7, 1, 2)
INPUTS = ("the query alone", "the query and a key", "query, key and value")
CHECK = Check(
    probes={
        "MultiHeadAttention.split": (
            two_heads,
            *situations("joint", parted, k_len=LENGTHS),
        ),
        "MultiHeadAttention.merge": (
            merge_two,
            *situations("heads", joined, k_len=LENGTHS),
        ),
        "MultiHeadAttention.project_keys_and_values": situations(
            "key and value", keys_and_values, k_len=LENGTHS
        ),
        "MultiHeadAttention.attend": (
            *situations("attend", attended, q_len=LENGTHS, k_len=(11, 1), kind=MASKS),
            *situations("forward", called, q_len=LENGTHS, k_len=(11, 1), kind=MASKS, inputs=INPUTS),
        ),
    },
    laws={
        "Each head has its own part of every position's features.": own_features,
    },
)
