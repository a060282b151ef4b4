"""A check runs the probes of a solution.

A *probe* calls a :class:`Solution` and returns named values. Each value also has a gradient by each
random input and weight of the probe. A solution is right if its values and gradients equal those of
the right solution. A solution has a known mistake if its values equal the mistake's values.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.tools.learn.inputs import drawn, noted

__all__ = [
    "CHANGED",
    "EXACT",
    "GRADIENT",
    "Probe",
    "Results",
    "Rounded",
    "Solution",
    "Values",
    "dtype_of",
    "measure",
    "probe",
    "probes_of",
    "returned",
    "unpacked",
    "values_of",
]

GRADIENT = "gradient with respect to "
"""The prefix that marks a value's name as the name of a gradient."""
EXACT = "float64 after bfloat16"
"""A type of a situation: float64 numbers that bfloat16 can say."""
CHANGED = "changed"
"""The name of the first value, a text that names the inputs and settings that have changed."""

Solution: TypeAlias = Any
"""A learner's file, or the right solution, with the lesson's holes as attributes."""
Values: TypeAlias = dict[str, NDArray[Any]]
"""The named values of one probe."""
Results: TypeAlias = dict[str, Values]
"""The values of each probe, by the probe's name. A probe that raised an error has no entry."""
Probe: TypeAlias = Callable[[Solution], Mapping[str, object]]


def probe(text: str, function: Probe) -> Probe:
    """A probe whose name and docstring are ``text``, which describes the input."""
    function.__name__ = function.__doc__ = text
    return function


@cache
def probes_of(lesson: str) -> Mapping[str, tuple[Probe, ...]]:
    """The probes of each hole, the smallest first, from ``probes.py`` in the lesson's folder."""
    return dict(import_module(f"glassformer.tools.learn.lessons.{lesson}.probes").PROBES)


def measure(probes: Iterable[Probe], solution: Solution, *, gradients: bool = True) -> Results:
    """The results of a solution from the package, without the probes that raise errors."""
    results: Results = {}
    for probe in probes:
        try:
            values = values_of(probe, solution, gradients=gradients)
            if exact := getattr(probe, "exact", None):
                values = _rounded(values, values_of(exact, solution, gradients=False))
            results[probe.__name__] = values
        except (
            RuntimeError,
            ValueError,
            TypeError,
            LookupError,
            ZeroDivisionError,
            AttributeError,
        ):
            continue
    return results


def values_of(probe: Probe, solution: Solution, *, gradients: bool = True, of: str = "") -> Values:
    """The values and gradients of one probe, and first the names of all that the solution changes.

    The gradients are those of all values, or of one value alone.
    Tensors that the solution makes are float64, or of the type of the probe's situation.
    """
    row = getattr(probe, "situation", {"type": "float64", "gradients": ""})
    dtype, wanted = dtype_of(row["type"]), not row["gradients"]
    low = dtype == torch.bfloat16
    with noted(torch.float32 if low else dtype, gradients=wanted) as inputs:
        values = dict(probe(solution))
        values = {CHANGED: inputs.changes(), **values}
    if low:
        for name, each in [*values.items()]:
            if isinstance(each, Tensor) and each.is_floating_point():
                values |= {name: each.float(), f"type of your {name}": str(each.dtype)}
    for name, value in values.items():
        if isinstance(value, tuple):
            raise TypeError(f"the function returns {len(value)} values; expected the {name}")
    if gradients and wanted and not low:
        values |= _gradients({of: values[of]} if of else values, inputs.leaves)
    return {
        name: value.detach().numpy().copy() if isinstance(value, Tensor) else np.asarray(value)
        for name, value in values.items()
    }


def dtype_of(name: str) -> torch.dtype:
    """The type of torch of a situation's type."""
    dtype: torch.dtype = getattr(torch, name.partition(" ")[0])
    return dtype


class Rounded(np.ndarray[Any, Any]):
    """Numbers that are right up to a ``tolerance``, because bfloat16 has about 2 digits."""

    tolerance = 0.0


def _rounded(values: Values, exact: Values) -> Values:
    """The values, whose tolerance follows from their errors; ``exact`` are those of float64."""
    for name, value in values.items():
        right = exact.get(name)
        if value.dtype.kind == "f" and right is not None and value.shape == right.shape:
            with np.errstate(invalid="ignore"):  # of two infinities
                error, size = np.nan_to_num(abs(value - right)), np.nan_to_num(abs(right))
            values[name] = rounded = value.view(Rounded)
            rounded.tolerance = 4 * error.max(initial=0) + size.max(initial=0) / 16
    return values


def _gradients(values: Mapping[str, object], leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The gradients of a random mixture of all values, by leaf; zero without a gradient."""
    outputs = [x for x in values.values() if isinstance(x, Tensor) and x.is_floating_point()]
    if not outputs or not leaves:
        return {}
    mixture = torch.stack([(x.double() * drawn(tuple(x.shape), 99)).sum() for x in outputs]).sum()
    gradients: Iterable[Tensor | None] = [None] * len(leaves)
    with suppress(RuntimeError):  # no gradient, or a value was changed in place
        gradients = torch.autograd.grad(mixture, [*leaves.values()], allow_unused=True)
    return {
        f"{GRADIENT}{name}": torch.zeros_like(leaf) if gradient is None else gradient
        for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True)
    }


def returned(answer: Any) -> Any:
    """A function's answer; TypeError if there is none."""
    if answer is None:
        raise TypeError("the function returns nothing: a return is missing")
    return answer


def unpacked(answer: Any, *names: str) -> Any:
    """The parts of a function's answer, one for each of ``names``; TypeError for another number."""
    if not isinstance(returned(answer), tuple) or len(answer) != len(names):
        kind = f"{len(answer)} values" if isinstance(answer, tuple) else type(answer).__name__
        raise TypeError(f"the function returns {kind}; expected {', '.join(names)}")
    return answer
