"""A hole, as a check calls it: the probes of its inputs, which have the names of its signature."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import torch

from glassformer.tools.learn.check import Probe, Solution, probe, returned, unpacked
from glassformer.tools.learn.inputs import given
from glassformer.tools.learn.situations import (
    AXES,
    LEFT_OUT,
    LOW,
    NONE,
    RETYPED,
    Situation,
    situations,
)

__all__ = ["Hole", "Input", "axis", "ids", "mask"]

Made: TypeAlias = Callable[[Situation, str], object]
Input: TypeAlias = str | Made
"""The sizes of random numbers, such as "batch 3 q_len 11", or a function that makes the input."""
Change: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes arguments by their names, and returns others."""


class Hole:
    """A function by its ``name``, and its ``inputs`` by their names, in their order.

    ``answer`` names the parts of the answer, or makes named values of it. The last part stands
    first, because the others come from it. ``owner`` makes the object of a method. ``options`` are
    the names of keyword arguments: inputs, or axes.
    """

    def __init__(
        self,
        name: str,
        answer: str | Callable[[Any, Situation], Mapping[str, object]],
        owner: Callable[[Solution, Situation], Any] | None = None,
        *,
        options: Sequence[str] = (),
        **inputs: Input,
    ) -> None:
        self.name, self.answer, self.owner = name, answer, owner
        self.options, self.inputs = options, inputs

    def example(self, says: str = "", /, **values: Any) -> Probe:
        """A probe of a few ``values``, which are inputs, options, or axes of the owner.

        ``says`` is the rule that the example shows.
        """
        text = ", ".join(f"{name} {_shown(value)}" for name, value in values.items())

        def run(solution: Solution) -> Mapping[str, object]:
            axes = {name: each[0] for name, each in AXES.items()} | values
            return self._called(solution, Situation(axes, {}), values)

        made: Any = self._named(probe(text, run))
        made.says = says
        return made

    def probes(self, *examples: Probe, **axes: Any) -> tuple[str, tuple[Probe, ...]]:
        """The hole's name, and its probes: examples and all situations."""
        return self.name, (*examples, *self.situations(**axes))

    def situations(self, *, device: str = "", **axes: Sequence[Any]) -> tuple[Probe, ...]:
        """The probes of all situations; the inputs tell which of the usual axes apply."""
        shapes = [each for each in self.inputs.values() if isinstance(each, str)]
        numbers, tensors = bool(shapes or self.owner), bool(shapes or "padding" in axes)
        usual = {
            "batch": AXES["batch"] if tensors else (1,),
            "type": AXES["type"] if numbers else ("float64",),
            "strides": AXES["strides"] if tensors else NONE,
            "gradients": AXES["gradients"] if numbers else ("no gradient is wanted",),
            "mode": AXES["mode"] if self.owner else NONE,
        }
        every = usual | axes
        if LOW in every["type"] and not self.owner:
            every = {"asked": (*AXES["asked"], RETYPED)} | every
        names = ", ".join(self.inputs)
        changes = dict(_changes(list(self.inputs)))
        made = situations(names, self._called, device=device, changes=changes, **every)
        return tuple(map(self._named, made))

    def _named(self, made: Probe) -> Probe:
        made.__name__ = f"{self.name}: {made.__doc__}"
        return made

    def _called(
        self, solution: Solution, s: Situation, values: Mapping[str, Any] | None = None
    ) -> Mapping[str, object]:
        """The named values of one call, with ``values`` in the places of some inputs."""
        arguments = {
            name: _given(values.get(name, LEFT_OUT), name) if values else _made(made, s, name)
            for name, made in self.inputs.items()
        }
        arguments = s.axes.get("change", dict)(arguments)
        axes = {name: s.axes.get(name, "") for name in self.options if name not in arguments}
        arguments |= {name: each for name, each in axes.items() if each != ""}
        kept = {name: each for name, each in arguments.items() if each is not LEFT_OUT}
        keywords = {name: kept.pop(name) for name in self.options if name in kept}
        owner = self.owner(solution, s) if self.owner else solution
        function = getattr(owner, self.name.rpartition(".")[2])
        answer = returned(function(*kept.values(), **keywords))
        if not isinstance(self.answer, str):
            return self.answer(answer, s)
        names = self.answer.split(", ")
        parts = unpacked(answer, *names) if len(names) > 1 else [answer]
        return dict(reversed([*zip(names, parts, strict=True)]))


WAYS: Mapping[str, Callable[[Any], Any]] = {
    "the {} of the first sentence for all": lambda x: x[:1].expand_as(x),
    "the {} the other way round": lambda x: ~x if x.dtype == torch.bool else None,
    "the {} in reverse order": lambda x: x.flip(-2 if x.is_floating_point() else -1),
    "the {} with the last two axes exchanged": lambda x: x.mT,
    "the {} in small letters": str.lower,
}
"""Changes of an input, in words; a change of another kind of input raises an error."""


def _changes(names: list[str]) -> Iterator[tuple[str, Change]]:
    """Changes of a hole's arguments: of one of them, or of two that are exchanged."""

    def changed(name: str, way: Callable[[Any], Any]) -> Change:
        return lambda arguments: arguments | {name: way(arguments[name])}

    def exchanged(one: str, other: str) -> Change:
        return lambda arguments: arguments | {one: arguments[other], other: arguments[one]}

    for name in names:
        yield from ((words.format(name), changed(name, way)) for words, way in WAYS.items())
    for pair in combinations(names, 2):
        yield "{} and {} exchanged".format(*pair), exchanged(*pair)


def axis(s: Situation, name: str) -> object:
    """The value of the axis that has the input's name."""
    return s.axes[name]


def ids(length: str, vocab: int, pad: str | int) -> Made:
    """Token ids (batch, length); ``pad`` may be the name of an axis."""

    def made(s: Situation, name: str) -> object:
        padding = (s.axes[pad] or 0) if isinstance(pad, str) else pad
        return s.tokens(name, s.axes[length], vocab, padding)

    return made


def mask(q_len: str, k_len: str, heads: int | str = 1) -> Made:
    """A mask of the kind that the input's own axis names."""

    def made(s: Situation, name: str) -> object:
        return s.mask(s.size(q_len), s.size(k_len), s.axes[name], heads=s.size(heads))

    return made


def _made(made: Input, s: Situation, name: str) -> object:
    return s.numbers(name, *made.split()) if isinstance(made, str) else made(s, name)


def _given(value: Any, name: str) -> Any:
    """A list of numbers as a tensor, also in a tuple or list; all else as it is."""
    if type(value) not in (list, tuple):
        return value
    first: Any = value
    while isinstance(first, list) and first:
        first = first[0]
    is_tensor = isinstance(value, list) and isinstance(first, int | float)
    return given(value, name) if is_tensor else type(value)(_given(each, name) for each in value)


def _shown(value: object) -> str:
    """
    >>> _shown([[1.0, 0.5]]), _shown(-30_000.0)
    ('[[1, 0.5]]', '-30000')
    """
    return re.sub(r"\.0\b", "", str(value))
