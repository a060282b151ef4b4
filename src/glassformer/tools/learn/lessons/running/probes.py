"""Probes of the running softmax."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from glassformer.tools.learn.check import Solution, unpacked
from glassformer.tools.learn.holes import Hole
from glassformer.tools.learn.inputs import drawn
from glassformer.tools.learn.lessons.running.plain import Block
from glassformer.tools.learn.situations import MASKS, SIZES, Situation


def scores(s: Situation, _: str) -> Iterator[float]:
    """Scores, which a solution can read only once; the last one is finite."""
    values = (drawn((s.length,), s.earlier) + s.largest).tolist()
    hidden = {"at the begin": range(s.length // 2), "inside": range(1, s.length - 1, 2)}
    places = hidden.get(s.hidden.removeprefix("scores of -∞ "), ())
    return iter([-math.inf if place in places else each for place, each in enumerate(values)])


def blocks(s: Situation, _: str) -> Iterator[Block]:
    """Blocks of 11 keys, which a solution can read only once."""
    key, value = s.numbers("key", "batch", 3, 11, 4), s.numbers("value", "batch", 3, 11, 7)
    mask = s.mask(s.q_len, 11, s.kind, heads=3)
    masks = mask.split(s.lengths, -1) if isinstance(mask, Tensor) else [None] * len(s.lengths)
    return zip(key.split(s.lengths, -2), value.split(s.lengths, -2), masks, strict=True)


def memory(solution: Solution) -> dict[str, Any]:
    """query (4, 2), 100 blocks of 2 keys"""
    key = torch.linspace(-1, 1, 400).reshape(200, 2)
    blocks = zip(key.split(2), key.split(2), [None] * 100, strict=True)
    with _Living() as living:
        output = solution.running_attention(key[:4], blocks)
    return {"output": output, "Your memory grows with the blocks": living.most > 4 * 200 / 2}


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


def summed(answer: Any, _: Situation) -> dict[str, float]:
    largest, total = unpacked(answer, "the largest score", "the sum")
    return {"largest score": float(largest), "sum": float(total)}


SUM = Hole("running_sum", summed, scores=scores)
ATTENTION = Hole("running_attention", "output", query="batch 3 q_len 4", blocks=blocks)
TWO_BLOCKS = ATTENTION.example(
    query=[[1.0]], blocks=[([[0.0]], [[10.0]], None), ([[1.0986]], [[20.0]], None)]
)
PROBES = (
    SUM.probes(
        length=(5, 1, 2, 131),
        largest=(0.0, 1000.0, -1000.0),
        hidden=("", "scores of -∞ at the begin", "scores of -∞ inside"),
    ),
    ATTENTION.probes(
        TWO_BLOCKS,
        memory,
        type=("float64",),
        q_len=(5, 1),
        kind=MASKS,
        size=SIZES,
        lengths=((3, 5, 1, 2), (11,), (1,) * 11),
    ),
)
