"""The inputs and weights of probes: known numbers, which the check notes as it hands them out."""

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
"""The inputs of a probe: each as it was, and as the solution gets it."""
_INPUTS: ContextVar[tuple[Leaves, Given]] = ContextVar("inputs")
"""Those of the probe that runs."""


@contextmanager
def noted() -> Iterator[tuple[Leaves, Given]]:
    """The inputs and weights that a probe makes in here; new tensors are float64, as they are."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    token = _INPUTS.set(([], []))
    try:
        yield _INPUTS.get()
    finally:
        torch.set_default_dtype(before)
        _INPUTS.reset(token)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """Normal random numbers in float64, the same on every machine.

    A probe detaches those whose gradient nobody needs, such as a cache's.
    """
    leaves, _ = _INPUTS.get(([], []))
    leaf = drawn(shape, seed).clone().requires_grad_()
    leaves.append((f"input {len(leaves) + 1} {shape}", leaf))
    return given(leaf)


def given(values: Any) -> Tensor:
    """A copy of a tensor, or of nested lists: the check notes if the solution changes it."""
    _, inputs = _INPUTS.get(([], []))
    tensor = torch.as_tensor(values)
    inputs.append((tensor, tensor.clone()))
    return inputs[-1][1]


def hides(length: int, count: int) -> Tensor:
    """A mask (2, 1, 1, length) that hides the last ``count`` keys of the second sentence."""
    return torch.arange(length) < torch.tensor([length, length - count])[:, None, None, None]


@cache
def drawn(shape: tuple[int, ...], seed: int) -> Tensor:
    """Drawn once: a judge makes the same weights for each of hundreds of mistakes."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def filled(module: M) -> M:
    """The module in float64, each parameter with random numbers that depend on its name alone."""
    module = module.double().eval()
    leaves, _ = _INPUTS.get(([], []))
    for name, weight in module.named_parameters():
        weight.data = 0.5 * drawn(tuple(weight.shape), crc32(name.encode()))
        leaves.append((f"the weight {name}", weight))
    return module


class Known(nn.Module):
    """A function in the place of a part: of a dropout without chance, or of a plain block."""

    p = 0.5  # of a dropout

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor | None, **masks: Tensor | None) -> Tensor:
        return self.function(*inputs, **masks)


def picks(*shape: int, below: int, seed: int = 0) -> Tensor:
    """Random integers from 0 to ``below - 1``."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, below, shape))
