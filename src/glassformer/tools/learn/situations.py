"""Situations of a hole: inputs that the axes of its signature make, in the rows of a small array.

Each axis has a few values, such as three numbers of sentences, or six masks. All values multiply to
thousands of situations. A *pairwise covering array* has each two values of two axes in some row, in
at most 40 rows. The first value of an axis is the usual one.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations, product
from random import Random
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar
from zlib import crc32

import torch
from torch import Tensor, nn

from glassformer.tools.learn.check import EXACT, Probe, Solution, dtype_of, probe
from glassformer.tools.learn.inputs import Noted, drawn, filled, given, noted, observed, running
from glassformer.tools.learn.where import in_words

__all__ = [
    "AXES",
    "ELSEWHERE",
    "IDS",
    "LEFT_OUT",
    "LOW",
    "MASKS",
    "NONE",
    "PADDING",
    "RETYPED",
    "SIZES",
    "WIDE",
    "Situation",
    "covering",
    "situations",
]

T = TypeVar("T", Tensor, nn.Module)
Value: TypeAlias = str | int | float | tuple[float, ...]
Hole: TypeAlias = Callable[[Solution, "Situation"], Mapping[str, object]]
"""Calls a solution's hole in a situation, and returns the named values."""

LOW = "bfloat16"
"""The type with about 2 digits."""
RETYPED = "asked twice: other numbers in bfloat16 first, and that answer is changed"
"""A value of "asked" for functions, and for objects without weights, which take any type."""
AXES: dict[str, Sequence[Value]] = {
    "batch": (2, 1, 5),
    "type": ("float64", "float32", LOW),
    "strides": ("", "inputs are not contiguous"),
    "gradients": ("", "no gradient is wanted"),
    "mode": ("", "in training"),
    "asked": ("", "asked twice: other numbers first, and that answer is changed"),
}
"""The axes of every hole; an axis that does not apply has the first value alone."""
MASKS = (
    "a mask (batch, 1, 1, k_len) that hides the end",
    "no mask",
    "None as the mask",
    "a mask (batch, 1, 1, k_len) that hides the begin",
    "a mask (batch, 1, 1, k_len) that hides every second key",
    "a mask (q_len, k_len) that hides later keys",
    "a mask (batch, heads, q_len, k_len) of random places",
    "a mask (q_len, k_len) that hides all keys from the first query",
    "a mask (batch, 1, 1, k_len) that hides all keys of the last sentence",
)
PADDING = (
    "padding at the end",
    "no padding",
    "padding at the begin",
    "padding inside",
    "a sentence of padding alone",
    "padding alone in all sentences",
)
IDS: dict[str, Any] = {"integers": ("", "int32")}
"""The types of token ids, where the answer picks nothing by them."""
ELSEWHERE = "inputs on another device"
"""The device is torch's "meta", which has no numbers: a hole that looks at one is not judged."""
SIZES = (1.0, 100.0, 0.01, 0.0)
"""The factors of inputs in float64; 0 makes all scores equal."""
WIDE = ("float64", "float32")
"""The types of a hole whose right solutions may have tensors of the default type inside."""
TRAINED = "asked twice: the weights change between"
NONE = ("",)
"""The values of an axis that does not apply."""
LEFT_OUT: Any = object()
"""In the place of an argument: the solution's default counts."""


class Situation:
    """One row: its axes are attributes. A second asking of the same object has other numbers."""

    def __init__(self, axes: Mapping[str, Any], made: dict[object, Any], earlier: int = 0) -> None:
        self.axes, self.made, self.earlier = axes, made, earlier
        self.tensors: dict[str, tuple[Tensor, Tensor]] = {}
        """The leaf of each name, and the solution's tensor, which a second asking gets again."""

    def __getattr__(self, axis: str) -> Any:
        return self.axes[axis]

    @property
    def dtype(self) -> torch.dtype:
        """The type of numbers."""
        return dtype_of(self.axes["type"])

    def size(self, of: int | str) -> int:
        """A number of its own, or the value of an axis."""
        return int(of) if str(of).isdecimal() else int(self.axes[str(of)])

    def numbers(self, name: str, *sizes: int | str) -> Tensor:
        """Random numbers of the situation's type and strides, noted by ``name``."""
        if name not in self.tensors:
            shape = tuple(map(self.size, sizes))
            scale = float(self.axes.get("size", 1.0))
            values = drawn(shape, crc32(name.encode()) + self.earlier) * scale
            leaf = self._laid(_typed(values, self.axes["type"]).clone())
            leaf.requires_grad_(not self.axes["gradients"])
            self.tensors[name] = leaf, given(leaf, name)
        leaf, tensor = self.tensors[name]
        if leaf.requires_grad:
            running().leaves[name] = leaf
        return tensor

    def tokens(self, name: str, length: int, vocab: int, pad: int) -> Tensor:
        """Token ids of every kind; id 0 and the last id are words, and padding is as it comes."""
        words = [each for each in (0, vocab - 1, *range(1, vocab - 1)) if each != pad]
        places = torch.arange(self.batch * length).reshape(self.batch, length)
        tokens = torch.tensor(words)[(places * 7 + self.earlier) % len(words)]
        tokens = torch.where(self._hidden(length), pad, tokens)
        return given(self._laid(tokens.int() if self.axes.get("integers") else tokens), name)

    def mask(self, q_len: int, k_len: int, kind: str, *, heads: int = 1) -> Any:
        """A mask (…, q_len, k_len) of a kind: a tensor, None, or ``LEFT_OUT``."""
        if kind.endswith(("no mask", "None as the mask")):
            return LEFT_OUT if kind.endswith("no mask") else None
        rows, keys = torch.arange(q_len)[:, None], torch.arange(k_len)
        if "later keys" in kind:
            mask = keys <= rows + max(k_len - q_len, 0)
        elif "the first query" in kind:
            mask = (rows > 0).expand(q_len, k_len)
        elif "random" in kind:
            mask = drawn((self.batch, heads, q_len, k_len), 5 + self.earlier) > 0
        else:
            mask = ~self._hidden(k_len, kind)[:, None, None]
        return given(mask, "the mask")

    def module(self, make: Callable[[], nn.Module]) -> Any:
        """An object with random weights, which all situations share that make it alike."""
        own = self.axes.get("own type", self.axes["type"])
        made_by = (own, self.axes.get("norm"), self.axes.get("blocks"))
        if made_by not in self.made:
            with _apart():  # the parts are no leaves of their own
                self.made[made_by] = _typed(filled(make()), own)
        module, is_training = self.made[made_by], bool(self.axes["mode"])
        if any(part.training != is_training for part in module.modules()):
            module.train(is_training)
        return module if self.earlier else observed(module)

    def _hidden(self, length: int, kind: str = "") -> Tensor:
        """The places (batch, length) of padding; another sentence has it in a second asking."""
        kind, places = kind or str(self.axes.get("padding", "no")), torch.arange(length)
        if "end" in kind:
            hidden = places >= length - length // 3 - self.earlier
        elif "begin" in kind:
            hidden = places < length // 3 + self.earlier
        elif "inside" in kind or "second key" in kind:
            hidden = places % 2 == 1
        else:
            hidden = places >= (0 if "alone" in kind or "last sentence" in kind else length)
        if "all sentences" in kind:
            return hidden.expand(self.batch, length)
        sentence = 0 if self.earlier else self.batch - 1
        return hidden & (torch.arange(self.batch) == sentence)[:, None]

    def _laid(self, tensor: Tensor) -> Tensor:
        """The tensor on its device, or equal numbers that are not contiguous."""
        tensor = tensor.to("meta") if self.axes.get("device") else tensor
        if not self.axes["strides"]:
            return tensor
        return torch.stack((tensor, -tensor), dim=-1)[..., 0]


def _typed(numbers: T, kind: str) -> T:
    """The numbers in a type; those of ``EXACT`` are float64, as far as bfloat16 can say them."""
    return (numbers.to(torch.bfloat16) if kind == EXACT else numbers).to(dtype_of(kind))


def situations(
    name: str,
    hole: Hole,
    *,
    device: str = "",
    changes: Mapping[str, Callable[[Any], Any]] = MappingProxyType({}),
    **axes: Sequence[Value],
) -> tuple[Probe, ...]:
    """The probes of a hole, one for each row; ``axes`` are the hole's own.

    The usual row comes again on another ``device``, where only devices are compared, and in
    bfloat16, where all rows would double the time of a check. ``changes`` of the inputs, by their
    words, make no rows; a judge asks the right solution for its answer to them.
    """
    every = AXES | axes
    types = tuple(each for each in every["type"] if each != LOW) or (LOW,)
    rows = covering(tuple((every | {"type": types}).items()))
    elsewhere = [rows[0] | {"device": device}] if device else []
    elsewhere += [rows[0] | {"asked": TRAINED}] if len(every["mode"]) > 1 else []
    if 5 in every["batch"] and "q_len" in every:  # a size that is equal tells no axis apart
        square = dict.fromkeys(("batch", "q_len", "k_len"), 5) | {"mask": MASKS[5]}
        elsewhere.append(rows[0] | square)
    if len(types) < len(every["type"]):
        elsewhere.append(rows[0] | {"type": LOW})
    for row in rows:  # only float64 has digits for other sizes
        if "size" in row and row["type"] != "float64":
            row["size"] = every["size"][0]
    fixed, shared = {axis for axis, values in axes.items() if len(values) == 1}, _Shared()
    probes: list[Any] = []
    for row in (*rows, *elsewhere):
        text = f"{name}: {_text(row, fixed)}"
        probes.append(_probe(text, hole, row, shared))
        make = partial(_probe, text, hole, shared=shared)
        probes[-1].supposed = partial(_supposed, make, row, every, changes)
    return tuple(probes)


_OUTSIDE = ("batch", "type", "strides", "gradients", "mode", "asked")
"""The axes of all holes, which a solution does not get."""


def _supposed(
    make: Callable[[dict[str, Any]], Probe],
    row: dict[str, Value],
    every: Mapping[str, Sequence[Value]],
    changes: Mapping[str, Callable[[Any], Any]],
) -> Iterator[tuple[tuple[str, Value], Probe]]:
    """Other situations that a solution may take for that of ``row``, by an axis and its value."""
    for axis, values in every.items():
        for value in () if axis in _OUTSIDE else values:
            if value != row[axis]:
                yield (axis, value), make(row | {axis: value})
    if row["asked"] == TRAINED:
        yield ("asked", ""), make(row | {"asked": ""})
    elif row["asked"]:
        yield ("call", "the first of the two calls"), make(row | {"asked": "", "earlier": 1})
    for words, change in changes.items():
        yield ("input", words), make(row | {"change": change})


@dataclass
class _Shared:
    """The objects that a hole's situations share, of the last solution."""

    solution: Solution = None
    made: dict[object, Any] = field(default_factory=dict)

    def of(self, solution: Solution) -> dict[object, Any]:
        if solution is not self.solution:
            self.solution, self.made = solution, {}
        return self.made


def _probe(text: str, hole: Hole, row: dict[str, Any], shared: _Shared) -> Probe:
    def asked(solution: Solution) -> Mapping[str, object]:
        made = {} if row["asked"] == RETYPED else shared.of(solution)
        if row.get("device"):
            meet = _meet(hole, solution, Situation(row, made))
            return {"You make tensors on another device than the inputs": meet}
        if row["asked"] == TRAINED:
            return _trained(hole, solution, Situation(row, made))
        first = _changed(hole, solution, row, made) if row["asked"] else []
        kept = [each.clone() for each in first]
        values = hole(solution, Situation(row, made, row.get("earlier", 0)))
        changed = not all(map(torch.equal, kept, first))
        answers = {_memory(each) for each in values.values() if isinstance(each, Tensor)}
        return {
            "The second call changes the answer of the first": changed,
            "Both calls return the same tensor": bool(answers & {*map(_memory, first)} - {0}),
            **values,
        }

    made: Any = probe(text, asked)
    made.situation = row
    if row["type"] == LOW:
        made.exact = lambda solution: hole(solution, Situation(row | {"type": EXACT}, {}))
        made.exact.situation = row | {"type": EXACT}
    return made


def _memory(tensor: Tensor) -> int:
    """The address of a tensor's numbers; 0 if there is none."""
    return 0 if tensor.is_meta else tensor.untyped_storage().data_ptr()


def _apart() -> AbstractContextManager[Noted]:
    """The inputs of the context are not those of the probe."""
    return noted(torch.get_default_dtype(), gradients=torch.is_grad_enabled())


def _changed(
    hole: Hole, solution: Solution, row: dict[str, Any], made: dict[object, Any]
) -> list[Tensor]:
    """The tensors of an answer, changed in place; a later answer shares no memory with them."""
    low = {"type": LOW, "own type": row["type"]} if row["asked"] == RETYPED else {}
    dtype = torch.float32 if low else torch.get_default_dtype()
    earlier = Situation(row | low, made, 1)
    with noted(dtype, gradients=torch.is_grad_enabled()):
        answer = [each for each in hole(solution, earlier).values() if isinstance(each, Tensor)]
    for each in answer:
        each.untyped_storage().fill_(1)  # type: ignore[attr-defined]
    return [each.detach() for each in answer]


def _trained(hole: Hole, solution: Solution, s: Situation) -> Mapping[str, object]:
    """The values of a second asking with the same tensors, after a change of all weights."""
    with _apart():
        hole(solution, s)
    parts = [each for each in s.made.values() if isinstance(each, nn.Module)]
    weights = [weight for part in parts for weight in part.parameters()]
    before = [weight.detach().clone() for weight in weights]
    with torch.no_grad():
        for weight in weights:
            weight.mul_(1.5)
    try:
        return {**hole(solution, s)}
    finally:
        with torch.no_grad():
            for weight, old in zip(weights, before, strict=True):
                weight.copy_(old)


def _meet(hole: Hole, solution: Solution, s: Situation) -> bool:
    """Whether tensors of two devices meet, or the answer is on another device than the inputs."""
    try:
        answer = hole(solution, s).values()
    except (RuntimeError, TypeError) as error:  # a solution may look at a number, which is missing
        return any(words in str(error) for words in ("expected device", "same device"))
    return not all(each.is_meta for each in answer if isinstance(each, Tensor))


def _text(row: Mapping[str, Value], fixed: Container[str]) -> str:
    """The row in words, without the axes of one value."""
    words = (in_words(*each) for each in row.items() if each[0] not in fixed)
    return ", ".join(word for word in words if word not in ("", "float64"))


@cache
def covering(axes: tuple[tuple[str, Sequence[Value]], ...]) -> list[dict[str, Value]]:
    """Rows in which each two values of two axes meet; the first row has the usual values.

    >>> rows = covering((("a", (0, 1)), ("b", (0, 1)), ("c", (0, 1))))
    >>> len(rows), sorted({(row["a"], row["c"]) for row in rows})
    (4, [(0, 0), (0, 1), (1, 0), (1, 1)])
    """
    values = [[(name, each) for each in choices] for name, choices in axes]
    missing = dict.fromkeys(x for axes in combinations(values, 2) for x in product(*axes))
    order, rows, draw = [name for name, _ in axes], [], Random(0)
    row = [choices[0] for choices in values]
    while True:
        rows.append(dict(row))
        for pair in combinations(row, 2):
            missing.pop(pair, None)
        if not missing:
            return rows
        fixed = next(iter(missing))
        row = list(fixed)
        for choices in draw.sample(values, len(values)):
            if choices[0][0] in (fixed[0][0], fixed[1][0]):
                continue
            shuffled = draw.sample(choices, len(choices))
            new = [sum((a, b) in missing or (b, a) in missing for b in row) for a in shuffled]
            row.append(shuffled[new.index(max(new))])
        row.sort(key=lambda each: order.index(each[0]))
