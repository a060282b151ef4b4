"""The shapes in the package's signatures are checked in the tests: import this module first.

A function whose signature names a tensor or an array is wrapped when its module is loaded. The
others are left alone: mypy checks their types, and a check at each call would double the time.

Each function is checked at its first calls in a test, then now and then: one training makes tens
of thousands of calls, and a check takes longer than most of them.
"""

import sys
from collections import Counter
from collections.abc import Callable
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from inspect import isclass, isfunction
from types import FunctionType, ModuleType

from beartype import beartype
from jaxtyping import jaxtyped

# Not learn: its checks make hundreds of thousands of small calls.
CHECKED = ("alignment", "data", "decoding", "model", "training", "support.tensors")
CHECKED += ("tools.doctor", "tools.inspection", "tools.interchange")
FIRST = 24  # calls of a function in a test, all of them checked; then one in as many
calls: Counter[FunctionType] = Counter()  # in the running test


class CheckedLoader(SourceFileLoader):
    """Loads a module and wraps its functions and methods."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        own = [each for each in vars(module).values() if _is_of(module, each)]
        functions = [
            (owner, name, function)
            for owner in (module, *filter(isclass, own))
            for name, function in vars(owner).items()
            if isfunction(function) and _is_of(module, function)
        ]
        checked = {
            function: _checked_often_enough(function)
            for *_, function in functions
            if _has_shapes(function)
        }
        for owner, name, function in functions:
            if function in checked:
                setattr(owner, name, checked[function])
            defaults = function.__kwdefaults__ or {}  # one function, one object
            defaults |= {key: checked[f] for key, f in defaults.items() if _is_in(checked, f)}


def _checked_often_enough(function: FunctionType) -> Callable:
    checked = jaxtyped(function, typechecker=beartype)

    @wraps(function)
    def call(*args: object, **options: object) -> object:
        calls[function] += 1
        number = calls[function]
        chosen = checked if number <= FIRST or number % FIRST == 0 else function
        return chosen(*args, **options)

    return call


def _is_of(module: ModuleType, value: object) -> bool:
    return getattr(value, "__module__", None) == module.__name__


def _is_in(checked: dict[FunctionType, Callable], value: object) -> bool:
    return isfunction(value) and value in checked


def _has_shapes(function: object) -> bool:
    annotations = str(getattr(function, "__annotations__", ""))  # types, or their source
    return "[Tensor, " in annotations or "ndarray, " in annotations


class CheckedFinder(MetaPathFinder):
    """Finds the modules of the checked packages."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not f"{name}.".startswith(tuple(f"glassformer.{room}." for room in CHECKED)):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = CheckedLoader(spec.loader.name, spec.loader.path)
        return spec


sys.meta_path.insert(0, CheckedFinder())
