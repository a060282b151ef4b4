"""Probes of multi-head attention."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.tools.learn.check import Check, Results, Solution, unchanged
from glassformer.tools.learn.inputs import filled, hides, numbers
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


def there_and_back(solution: Solution) -> dict[str, Any]:
    """joint (2, 7, 15): split, and merged again"""
    attention = _attention(solution)
    return {"joint": attention.merge(attention.split(_query()))}


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


def attend_masked(solution: Solution) -> dict[str, Any]:
    """query (2, 7, 15), keys and values (2, 3, 11, 5), a mask (2, 1, 1, 11) that hides four keys"""
    return _attended(solution, hides(11, 4))


def other_hidden_keys(solution: Solution) -> dict[str, Any]:
    """query (2, 7, 15), keys and values (2, 3, 11, 5), a mask, other numbers in the hidden keys"""
    return _attended(solution, hides(11, 4), change=~hides(11, 4).mT * 3.0)


def whole(solution: Solution) -> dict[str, Any]:
    """forward with query (2, 7, 15), key and value (2, 11, 15), a mask that hides four keys"""
    return {"output": _attention(solution)(_query(), *_key_and_value(), hides(11, 4))}


def second_sentence(solution: Solution) -> dict[str, Any]:
    """forward with one sentence: query (1, 7, 15), key and value (1, 11, 15), a mask"""
    inputs = (tensor[1:] for tensor in (_query(), *_key_and_value(), hides(11, 4)))
    return {"output": _attention(solution)(*inputs)}


def _attention(solution: Solution) -> Any:
    return filled(solution.MultiHeadAttention(D_MODEL, HEADS))


def _query() -> Tensor:
    return numbers(2, 7, D_MODEL, name="query")


def _key_and_value() -> tuple[Tensor, Tensor]:
    return (
        numbers(2, 11, D_MODEL, seed=1, name="key"),
        numbers(2, 11, D_MODEL, seed=2, name="value"),
    )


def _attended(solution: Solution, mask: Tensor, change: Tensor | float = 0.0) -> dict[str, Any]:
    keys, values = (
        numbers(2, HEADS, 11, WIDTH, seed=seed, name=name)
        for seed, name in ((3, "keys"), (4, "values"))
    )
    return {"output": _attention(solution).attend(_query(), keys + change, values + change, mask)}


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


def returns(results: Results) -> str | None:
    joint, expected = results["there_and_back"]["joint"], _query().detach().numpy()
    if joint.shape == expected.shape and abs(joint - expected).max() < 1e-9:
        return None
    return "Your merge(split(joint)) is not joint."


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
            there_and_back,
            *situations("heads", joined, k_len=LENGTHS),
        ),
        "MultiHeadAttention.project_keys_and_values": situations(
            "key and value", keys_and_values, k_len=LENGTHS
        ),
        "MultiHeadAttention.attend": (
            attend_masked,
            other_hidden_keys,
            whole,
            second_sentence,
            *situations("attend", attended, q_len=LENGTHS, k_len=(11, 1), kind=MASKS),
            *situations("forward", called, q_len=LENGTHS, k_len=(11, 1), kind=MASKS, inputs=INPUTS),
        ),
    },
    laws={
        "Each head has its own part of every position's features.": own_features,
        "merge takes back what split does.": returns,
        "A hidden key changes nothing.": unchanged(
            attend_masked,
            other_hidden_keys,
            "Another number in a hidden key changes the output by {}.",
        ),
        "A sentence is read as if it were alone.": unchanged(
            whole,
            second_sentence,
            "The first sentence of the batch changes the second one by {}.",
            at=np.s_[1:],
        ),
    },
)
