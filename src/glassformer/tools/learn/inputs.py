"""The inputs and weights of probes: known numbers, which the check notes as a probe asks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeAlias, TypeVar
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

__all__ = [
    "Given",
    "Known",
    "Leaves",
    "drawn",
    "filled",
    "given",
    "hides",
    "noted",
    "numbers",
    "picks",
]

M = TypeVar("M", bound=nn.Module)

Leaves: TypeAlias = list[tuple[str, Tensor]]
"""The random inputs and weights of a probe, by names for people."""
Given: TypeAlias = list[tuple[Tensor, Tensor]]
"""The inputs of a probe, each as a pair: a copy, and the tensor that the solution gets."""
_INPUTS: ContextVar[tuple[Leaves, Given]] = ContextVar("inputs")
"""The leaves and inputs of the running probe."""


@contextmanager
def noted() -> Iterator[tuple[Leaves, Given]]:
    """Note the inputs and weights that a probe makes in the context; new tensors are float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    token = _INPUTS.set(([], []))
    try:
        yield _INPUTS.get()
    finally:
        torch.set_default_dtype(before)
        _INPUTS.reset(token)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """Normal random numbers in float64, equal on every machine.

    A probe detaches numbers that need no gradients, such as the numbers of a cache.
    """
    leaves, _ = _INPUTS.get(([], []))
    leaf = drawn(shape, seed).clone().requires_grad_()
    leaves.append((f"input {len(leaves) + 1} {shape}", leaf))
    return given(leaf)


def given(values: Any) -> Tensor:
    """A tensor of ``values`` for the solution; the check notes if the solution changes it."""
    _, inputs = _INPUTS.get(([], []))
    tensor = torch.as_tensor(values)
    inputs.append((tensor, tensor.clone()))
    return inputs[-1][1]


def hides(length: int, count: int) -> Tensor:
    """A mask (2, 1, 1, length) that hides the last ``count`` keys of the second sentence."""
    return torch.arange(length) < torch.tensor([length, length - count])[:, None, None, None]


@cache
def drawn(shape: tuple[int, ...], seed: int) -> Tensor:
    """Normal random numbers, cached, because a judge draws them for hundreds of mistakes."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def filled(module: M) -> M:
    """The module in float64; a parameter's random numbers depend only on name and shape."""
    module = module.double().eval()
    leaves, _ = _INPUTS.get(([], []))
    for name, weight in module.named_parameters():
        weight.data = 0.5 * drawn(tuple(weight.shape), crc32(name.encode()))
        leaves.append((f"the weight {name}", weight))
    return module


class Known(nn.Module):
    """A module that calls a function, in the place of dropout or of a block."""

    p = 0.5  # the rate, if the module stands for dropout

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor | None, **masks: Tensor | None) -> Tensor:
        return self.function(*inputs, **masks)


def picks(*shape: int, below: int, seed: int = 0) -> Tensor:
    """Random integers from 0 to ``below - 1``."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, below, shape))
