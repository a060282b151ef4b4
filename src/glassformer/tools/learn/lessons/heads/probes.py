"""Probes of multi-head attention."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.tools.learn.check import Check, Results, Solution, unchanged
from glassformer.tools.learn.inputs import filled, hides, numbers

HEADS, WIDTH, D_MODEL = 3, 5, 15


def two_heads(solution: Solution) -> dict[str, Any]:
    """joint (1, 3, 4) with the numbers 0 to 11, 2 heads"""
    joint = torch.arange(12.0).reshape(1, 3, 4)
    return {"heads": solution.MultiHeadAttention(4, 2).split(joint)}


def three_heads(solution: Solution) -> dict[str, Any]:
    """joint (2, 7, 15), 3 heads"""
    return {"heads": _attention(solution).split(_query())}


def merge_two(solution: Solution) -> dict[str, Any]:
    """heads (1, 2, 3, 2) with the numbers 0 to 11"""
    heads = torch.arange(12.0).reshape(1, 2, 3, 2)
    return {"joint": solution.MultiHeadAttention(4, 2).merge(heads)}


def merge_three(solution: Solution) -> dict[str, Any]:
    """heads (2, 3, 7, 5)"""
    return {"joint": _attention(solution).merge(numbers(2, HEADS, 7, WIDTH))}


def there_and_back(solution: Solution) -> dict[str, Any]:
    """joint (2, 7, 15): split, and merged again"""
    attention = _attention(solution)
    return {"joint": attention.merge(attention.split(_query()))}


def keys_and_values(solution: Solution) -> dict[str, Any]:
    """key and value (2, 11, 15), two different tensors; 3 heads"""
    keys, values = _attention(solution).project_keys_and_values(*_key_and_value())
    return {"keys": keys, "values": values}


def attend(solution: Solution) -> dict[str, Any]:
    """query (2, 7, 15), keys and values (2, 3, 11, 5), no mask"""
    return _attended(solution, None)


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
    return numbers(2, 7, D_MODEL)


def _key_and_value() -> tuple[Tensor, Tensor]:
    return numbers(2, 11, D_MODEL, seed=1), numbers(2, 11, D_MODEL, seed=2)


def _attended(
    solution: Solution, mask: Tensor | None, change: Tensor | float = 0.0
) -> dict[str, Any]:
    keys, values = numbers(2, HEADS, 11, WIDTH, seed=3), numbers(2, HEADS, 11, WIDTH, seed=4)
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


CHECK = Check(
    probes={
        "MultiHeadAttention.split": (two_heads, three_heads),
        "MultiHeadAttention.merge": (merge_two, merge_three, there_and_back),
        "MultiHeadAttention.project_keys_and_values": (keys_and_values,),
        "MultiHeadAttention.attend": (
            attend,
            attend_masked,
            other_hidden_keys,
            whole,
            second_sentence,
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
