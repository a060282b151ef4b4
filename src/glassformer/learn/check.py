"""A check: probes of a solution, and a reference that can make each known mistake.

A *probe* calls a :class:`Solution` and returns named values. A solution with the reference's values
is right. A solution with the values of the reference with some fault has made that mistake.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias, TypeVar
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = [
    "Check",
    "Evidence",
    "Faults",
    "Probe",
    "Results",
    "Solution",
    "Values",
    "check_of",
    "filled",
    "measure",
    "numbers",
    "picks",
    "unpacked",
    "values_of",
]

M = TypeVar("M", bound=nn.Module)


Solution: TypeAlias = Any
"""A learner's file, or ``reference(faults)``: the lesson's holes are its attributes."""
Values: TypeAlias = dict[str, NDArray[Any]]
"""The named values of one probe."""
Results: TypeAlias = dict[str, Values]
"""The values of each probe, by the probe's name. A probe that raised an error is left out."""
Faults: TypeAlias = Mapping[str, str]
"""The fault of each switch that is not right."""
Probe: TypeAlias = Callable[[Solution], Mapping[str, object]]
Evidence: TypeAlias = Callable[[Results], str | None]
"""A sentence with numbers from the learner's results; None if they show nothing."""


@dataclass(frozen=True)
class Check:
    """All code that judges a solution of one lesson.

    ``probes`` belong to the holes; the smallest comes first, and its docstring describes its input.
    ``laws`` hold for every right solution: each returns the evidence against it.
    """

    reference: Callable[[Faults], Solution]
    probes: Mapping[str, tuple[Probe, ...]]
    laws: Mapping[str, Evidence] = field(default_factory=dict)

    @property
    def all_probes(self) -> list[Probe]:
        return [probe for probes in self.probes.values() for probe in probes]


def check_of(lesson: str) -> Check:
    """The check of the lesson of this name, from its module in ``checks/``."""
    return import_module(f"glassformer.learn.checks.{lesson}").CHECK


def measure(probes: Iterable[Probe], solution: Solution) -> Results:
    """The results of a solution of our own: a probe that raises an error is left out."""
    results: Results = {}
    for probe in probes:
        try:
            results[probe.__name__] = values_of(probe, solution)
        except (RuntimeError, ValueError, TypeError, IndexError, ZeroDivisionError):
            continue
    return results


def values_of(probe: Probe, solution: Solution) -> Values:
    """The values of one probe. A tensor that the solution makes is float64, as the inputs are."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return {
            name: value.detach().numpy().copy() if isinstance(value, Tensor) else np.asarray(value)
            for name, value in probe(solution).items()
        }
    finally:
        torch.set_default_dtype(before)


def unpacked(answer: object, *names: str) -> Any:
    """The parts of a function's answer; TypeError for another number of them."""
    if not isinstance(answer, tuple) or len(answer) != len(names):
        kind = f"{len(answer)} values" if isinstance(answer, tuple) else type(answer).__name__
        raise TypeError(f"the function returns {kind}; expected {', '.join(names)}")
    return answer


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """Normal random numbers in float64, the same on every machine."""
    return _drawn(shape, seed).clone()


@cache
def _drawn(shape: tuple[int, ...], seed: int) -> Tensor:
    """Drawn once: a judge makes the same weights for each of hundreds of mistakes."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def filled(module: M) -> M:
    """The module in float64, each parameter with random numbers that depend on its name alone."""
    module = module.double().eval()
    for name, weight in module.named_parameters():
        weight.data = 0.5 * numbers(*weight.shape, seed=crc32(name.encode()))
    return module


def picks(*shape: int, below: int, seed: int = 0) -> Tensor:
    """Random integers from 0 to ``below - 1``."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, below, shape))
