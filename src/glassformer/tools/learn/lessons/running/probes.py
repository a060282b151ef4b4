"""Probes of the running softmax."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from glassformer.tools.learn.check import Check, Probe, Solution, probe, unchanged
from glassformer.tools.learn.inputs import numbers
from glassformer.tools.learn.lessons.running.plain import Block


def _summed(*scores: float) -> Probe:
    def summed(solution: Solution) -> dict[str, float]:
        largest, total = solution.running_sum(iter(scores))
        return {"largest score": float(largest), "sum": float(total)}

    return probe(f"scores {', '.join(f'{score:g}' for score in scores)}", summed)


def two_blocks(solution: Solution) -> dict[str, Any]:
    """query [[1]], blocks with keys [[0]] and [[log 3]], values [[10]] and [[20]]"""
    keys, values = torch.tensor([[0.0], [math.log(3)]]), torch.tensor([[10.0], [20.0]])
    return {"output": solution.running_attention(torch.ones(1, 1), _blocks(keys, values, [1, 1]))}


def _attended(lengths: list[int], text: str = "", mask: Tensor | None = None) -> Probe:
    def attended(solution: Solution) -> dict[str, Any]:
        query, key, value = (
            numbers(2, 3, *size, seed=seed, name=name)
            for seed, (name, size) in enumerate(SIZES.items())
        )
        blocks = _blocks(key, value, lengths, mask)
        return {"output": solution.running_attention(query, blocks)}

    return probe(f"query (2, 3, 5, 4), blocks of {lengths} keys{text}", attended)


def large_scores(solution: Solution) -> dict[str, Any]:
    """queries [[1000], [-1000]], blocks with keys [[1]] and [[2], [3]]"""
    query, key = torch.tensor([[1000.0], [-1000.0]]), torch.tensor([[1.0], [2.0], [3.0]])
    return {
        "output": solution.running_attention(
            query, _blocks(key, numbers(3, 2, name="value"), [1, 2])
        )
    }


def memory(solution: Solution) -> dict[str, Any]:
    """query (4, 2), 100 blocks of 2 keys"""
    key = torch.linspace(-1, 1, 400).reshape(200, 2)
    blocks = _blocks(key, key, [2] * 100)
    with _Living() as living:
        output = solution.running_attention(key[:4], blocks)
    return {"output": output, "Your memory grows with the blocks": living.most > 4 * 200 / 2}


def _blocks(
    key: Tensor, value: Tensor, lengths: list[int], mask: Tensor | None = None
) -> Iterator[Block]:
    """An iterator of blocks, which a solution can read only once."""
    masks = [None] * len(lengths) if mask is None else mask.split(lengths, -1)
    return zip(key.split(lengths, -2), value.split(lengths, -2), masks, strict=True)


class _Living(TorchFunctionMode):
    """Counts the numbers in all living tensors; ``most`` is the highest count."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes, self.most = WeakIdKeyDictionary(), 0

    def __torch_function__(
        self,
        function: Callable[..., object],
        _types: object,
        arguments: Sequence[object] = (),
        options: Mapping[str, object] | None = None,
    ) -> object:
        result = function(*arguments, **(options or {}))
        if isinstance(result, Tensor):
            self.sizes[result] = result.numel()
            self.most = max(self.most, sum(self.sizes.values()))
        return result


FOUR, SIZES = [3, 5, 1, 2], {"query": (5, 4), "key": (11, 4), "value": (11, 7)}
ONE_BLOCK, FOUR_BLOCKS = _attended([11]), _attended(FOUR)
LATE = (torch.arange(11) >= 3).expand(5, 11)
EMPTY = (numbers(2, 1, 5, 11, seed=3) > 0) & (torch.arange(5) != 1)[:, None]
CHECK = Check(
    probes={
        "running_sum": (
            _summed(1.0, 3.0, 2.0),
            _summed(-1000.0, -1001.0, -999.0),
            _summed(1000.0, 999.0, 1002.0, 1001.0),
            _summed(-math.inf, -math.inf, 2.0, -math.inf, 1.0),
        ),
        "running_attention": (
            *(two_blocks, ONE_BLOCK, FOUR_BLOCKS),
            _attended(FOUR, ", a mask (5, 11) that hides the first block", LATE),
            _attended(FOUR, ", a mask (2, 1, 5, 11) that hides all keys from query 1", EMPTY),
            *(large_scores, memory),
        ),
    },
    laws={
        "The output does not depend on the blocks.": unchanged(
            ONE_BLOCK, FOUR_BLOCKS, "In four blocks, it changes by {}."
        )
    },
)
