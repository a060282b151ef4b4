"""The inputs and weights of probes: known numbers, which the check notes as a probe asks."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

__all__ = [
    "Known",
    "Noted",
    "drawn",
    "filled",
    "given",
    "kept",
    "noted",
    "observed",
    "running",
    "watched",
]

M = TypeVar("M", bound=nn.Module)


@dataclass
class Noted:
    """All that a probe hands to a solution, by names for people.

    ``leaves`` are the random inputs and weights, which get gradients. ``inputs`` are tensors by
    their ids, each with a copy from before. ``modules`` have their mode, True in training.
    ``watched`` tells of another input if it is as it was.
    """

    leaves: dict[str, Tensor] = field(default_factory=dict)
    inputs: dict[int, tuple[str, Tensor, Tensor]] = field(default_factory=dict)
    modules: dict[nn.Module, bool] = field(default_factory=dict)
    watched: list[tuple[str, Callable[[], bool]]] = field(default_factory=list)
    settings: Mapping[str, object] = field(default_factory=lambda: _settings())

    def changes(self) -> str:
        """The names of the inputs, weights and settings that have changed."""
        inputs = self.inputs.values()
        names = [name for name, before, tensor in inputs if not torch.equal(before, tensor)]
        names += ["train and eval" for each, mode in self.modules.items() if each.training != mode]
        names += [name for name, is_same in self.watched if not is_same()]
        settings = _settings()
        names += [name for name, before in self.settings.items() if settings[name] != before]
        return ", ".join(dict.fromkeys(names))


_NOTED: ContextVar[Noted | None] = ContextVar("noted", default=None)


def running() -> Noted:
    """The leaves and inputs of the running probe."""
    return _NOTED.get() or Noted()


def _settings() -> dict[str, object]:
    """Python's and torch's settings for all code, by names for people."""
    return {
        "torch's default type": torch.get_default_dtype(),
        "torch's switch of gradients": torch.is_grad_enabled(),
        "the seed of torch": torch.initial_seed(),
        "the state of Python's random": random.getstate(),
    }


@contextmanager
def noted(dtype: torch.dtype = torch.float64, *, gradients: bool = True) -> Iterator[Noted]:
    """Note the inputs and weights that a probe makes in the context; new tensors are ``dtype``."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.set_grad_enabled(gradients):
            inputs = Noted()
            token = _NOTED.set(inputs)
            yield inputs
    finally:
        torch.set_default_dtype(before)
        _NOTED.reset(token)


def given(values: Any, name: str = "an input") -> Tensor:
    """A tensor of ``values`` for the solution; the check notes if the solution changes it."""
    tensor = torch.as_tensor(values)
    passed = tensor.clone()
    if not passed.is_meta:
        running().inputs[id(passed)] = name, tensor, passed
    return passed


def watched(name: str, tensor: Tensor) -> None:
    """Note a tensor of the solution, such as a table; the check notes a change of it."""
    running().inputs[id(tensor)] = name, tensor.detach().clone(), tensor


def kept(values: Any) -> Any:
    """A list or dict for the solution; the check notes if the solution changes it."""
    before = copy(values)
    running().watched.append(("an input", lambda: values == before and [*values] == [*before]))
    return values


@cache
def drawn(shape: tuple[int, ...], seed: int) -> Tensor:
    """Normal random numbers, cached, because a judge draws them for hundreds of mistakes."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def filled(module: M) -> M:
    """The module in float64; a parameter's random numbers depend only on name and shape."""
    for name, weight in module.double().named_parameters():
        weight.data = 0.5 * drawn(tuple(weight.shape), crc32(name.encode()))
    return observed(module.eval())


def observed(module: M) -> M:
    """The module; the check notes its weights, which get gradients, and its mode."""
    inputs = running()
    weights = {f"the weight {name}": each for name, each in module.named_parameters()}
    inputs.leaves |= weights
    buffers = {f"the buffer {name}": each for name, each in module.named_buffers()}
    for name, each in (weights | buffers).items():
        watched(name, each)
    inputs.modules.update((each, each.training) for each in module.modules())
    return module


class Known(nn.Module):
    """A module that calls a function, in the place of dropout or of a block."""

    p = 0.5  # the rate, if the module stands for dropout

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor | None, **masks: Tensor | None) -> Tensor:
        return self.function(*inputs, **masks)
