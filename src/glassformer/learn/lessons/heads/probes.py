"""Probes of multi-head attention."""

from typing import Any

import torch
from torch import Tensor

from glassformer.learn.check import Check, Evidence, Results, Solution, filled, numbers

__all__ = ["CHECK"]

HEADS, WIDTH, D_MODEL = 3, 5, 15


def two_heads(solution: Solution) -> dict[str, Any]:
    """joint (1, 3, 4) with the numbers 0 to 11, 2 heads"""
    joint = torch.arange(12, dtype=torch.float64).reshape(1, 3, 4)
    return {"heads": solution.MultiHeadAttention(4, 2).split(joint)}


def three_heads(solution: Solution) -> dict[str, Any]:
    """joint (2, 7, 15), 3 heads"""
    return {"heads": _attention(solution).split(_inputs()[0])}


def merge_two(solution: Solution) -> dict[str, Any]:
    """heads (1, 2, 3, 2) with the numbers 0 to 11"""
    heads = torch.arange(12, dtype=torch.float64).reshape(1, 2, 3, 2)
    return {"joint": solution.MultiHeadAttention(4, 2).merge(heads)}


def merge_three(solution: Solution) -> dict[str, Any]:
    """heads (2, 3, 7, 5)"""
    return {"joint": _attention(solution).merge(numbers(2, HEADS, 7, WIDTH))}


def there_and_back(solution: Solution) -> dict[str, Any]:
    """joint (2, 7, 15): split, and merged again"""
    attention, joint = _attention(solution), _inputs()[0]
    return {"joint": attention.merge(attention.split(joint))}


def keys_and_values(solution: Solution) -> dict[str, Any]:
    """key and value (2, 11, 15), two different tensors; 3 heads"""
    keys, values = _attention(solution).project_keys_and_values(*_inputs()[1:])
    return {"keys": keys, "values": values}


def attend(solution: Solution) -> dict[str, Any]:
    """query (2, 7, 15), keys and values (2, 3, 11, 5), no mask"""
    return _attended(solution)


def attend_masked(solution: Solution) -> dict[str, Any]:
    """the same, with a mask (2, 1, 1, 11) that hides the last four keys of the second sentence"""
    return _attended(solution, mask=_hidden())


def other_hidden_keys(solution: Solution) -> dict[str, Any]:
    """the same, with other numbers in the hidden keys and values"""
    return _attended(solution, mask=_hidden(), change=~_hidden().mT * 3.0)


def whole(solution: Solution) -> dict[str, Any]:
    """forward with query (2, 7, 15), key and value (2, 11, 15), the same mask"""
    return {"output": _attention(solution)(*_inputs(), _hidden())}


def second_sentence(solution: Solution) -> dict[str, Any]:
    """forward with the second sentence of the same batch alone"""
    inputs = (tensor[1:] for tensor in _inputs())
    return {"output": _attention(solution)(*inputs, _hidden()[1:])}


def _attention(solution: Solution) -> Any:
    return filled(solution.MultiHeadAttention(D_MODEL, HEADS))


def _inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value."""
    return (
        numbers(2, 7, D_MODEL),
        numbers(2, 11, D_MODEL, seed=1),
        numbers(2, 11, D_MODEL, seed=2),
    )


def _hidden() -> Tensor:
    return torch.arange(11) < torch.tensor([11, 7])[:, None, None, None]


def _attended(
    solution: Solution, mask: Tensor | None = None, change: Tensor | float = 0.0
) -> dict[str, Any]:
    keys, values = numbers(2, HEADS, 11, WIDTH, seed=3), numbers(2, HEADS, 11, WIDTH, seed=4)
    output = _attention(solution).attend(_inputs()[0], keys + change, values + change, mask)
    return {"output": output}


def own_features(results: Results) -> str | None:
    """The first part of a head that is not its own part of a position's features."""
    heads = results.get("two_heads", {}).get("heads")
    if heads is None or heads.shape != (1, 2, 3, 2):
        return None
    for head in range(2):
        for position in range(3):
            start = 4 * position + 2 * head
            yours = heads[0, head, position]
            if yours.tolist() != [start, start + 1]:
                return (
                    f"Position {position} has the features {[4 * position + i for i in range(4)]};"
                    f" its head {head} of 2 should be {[start, start + 1]},"
                    f" and is {yours.astype(int).tolist()}."
                )
    return None


def returns(results: Results) -> str | None:
    joint = results.get("there_and_back", {}).get("joint")
    expected = _inputs()[0].numpy()
    if joint is None or (joint.shape == expected.shape and abs(joint - expected).max() < 1e-9):
        return None
    return "Your merge(split(joint)) is not joint."


def _same_output(first: str, second: str, rows: slice, text: str) -> Evidence:
    def evidence(results: Results) -> str | None:
        if first not in results or second not in results:
            return None
        output, other = results[first]["output"], results[second]["output"]
        if output.ndim != 3 or output[rows].shape != other.shape:
            return None
        change = abs(output[rows] - other).max()
        return f"{text} changes the output by {change:.3g}." if change > 1e-9 else None

    return evidence


hidden = _same_output(
    "attend_masked", "other_hidden_keys", slice(None), "Another number in a hidden key"
)
alone = _same_output("whole", "second_sentence", slice(1, 2), "The first sentence of the batch")

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
        "A hidden key changes nothing.": hidden,
        "A sentence is read as if it were alone.": alone,
    },
)
