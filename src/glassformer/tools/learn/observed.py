"""Sentences about two arrays, a learner's and the right one: the facts, and never a cause."""

from ast import literal_eval
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.tools.learn.check import CHANGED, GRADIENT, Results, Values

__all__ = ["alike", "compared", "digits_of", "equal", "is_text", "observations", "same"]

_TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2}
_SHOWN = 4  # numbers of a row
_LISTED = 6  # numbers of a value that is shown whole


def equal(value: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays are equal, up to the precision of their types."""
    if value.shape != other.shape or value.dtype.kind != other.dtype.kind:
        return False
    return bool(_close(value, other).all())


def _close(value: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    if value.dtype.kind != "f":
        return np.asarray(value == other)
    rounded = max(getattr(each, "tolerance", 0) for each in (value, other))
    if rounded:
        return np.isclose(value, other, rtol=0, atol=rounded, equal_nan=True)
    tolerance = max(_TOLERANCES[value.dtype.name], _TOLERANCES[other.dtype.name])
    return np.isclose(value, other, rtol=tolerance, atol=tolerance, equal_nan=True)


def is_text(value: NDArray[Any], right: NDArray[Any]) -> bool:
    """Whether a value is an object, such as None, where numbers are right."""
    return value.dtype.kind == "U" != right.dtype.kind


def same(results: Results, others: Results) -> bool:
    """Whether each probe of ``results`` has equal values in ``others``."""
    return all(alike(values, others.get(probe)) for probe, values in results.items())


def alike(values: Values | None, others: Values | None) -> bool:
    """Whether two results of a probe are both errors, or have equal values apart from gradients."""
    if values is None or others is None:
        return values is others
    names, other_names = (
        [name for name in each if not name.startswith(GRADIENT)] for each in (values, others)
    )
    return names == other_names and all(equal(values[name], others[name]) for name in names)


def compared(name: str, value: NDArray[Any], right: NDArray[Any]) -> str:
    """The sentence with both values at the first place at which they differ."""
    if name == CHANGED:
        return f"You change {value.item()}."
    if right.dtype == bool and not right.shape:
        return f"{name}."
    if name.startswith("type of "):
        return f"The {name} is {value}; right is {right}."
    if is_text(value, right):
        return f"Your {name}: {str(value.item())[:40]}; right are numbers of shape {right.shape}."
    if value.shape != right.shape:
        return f"The shape of your {name} is {value.shape}; right is {right.shape}."
    if value.dtype.kind != right.dtype.kind:
        return f"The type of your {name} is {value.dtype}; right is {right.dtype}."
    if value.size <= _LISTED:
        at, yours, theirs = _apart(value.tolist(), right.tolist())
        shown, expected = _both_listed(yours, theirs)
        name += at
        return f"Your {name}: {shown}; right is {expected}."
    wrong = np.argwhere(~_close(value, right))
    *row, first = wrong[0].tolist()
    place = (*row, slice(first, first + _SHOWN))
    shown, expected = _both_listed(value[place].tolist(), right[place].tolist())
    return (
        f"Your {name}{[*row, first]} and its row: {shown[1:-1]}; right is {expected[1:-1]}"
        f" ({len(wrong)} of {value.size} numbers differ)."
    )


def observations(
    values: Values, right: Values, sizes: Mapping[str, object] | None = None
) -> Iterator[str]:
    """Facts on the first wrong value, and the inputs that have no influence, or too much.

    ``sizes`` are the axes of the situation, which name the axes of the value.
    """
    for name, value in values.items():
        if equal(value, right[name]):
            continue
        if name.startswith(GRADIENT) and not value.any():
            leaf = name.removeprefix(GRADIENT)
            yield f"No gradient comes back to {leaf}. Look for detach, .data and no_grad."
        elif name != CHANGED and not name.startswith("type of "):
            if not name.startswith(GRADIENT):
                yield from _influences(values, right)
            yield from _seen(name, value, right[name], sizes or {})
        return


def _influences(values: Values, right: Values) -> Iterator[str]:
    gradients = {name: value for name, value in values.items() if name.startswith(GRADIENT)}
    if not any(value.any() for value in gradients.values()):
        return
    for name, value in gradients.items():
        leaf, expected = name.removeprefix(GRADIENT), right.get(name)
        if expected is None or expected.shape != value.shape:
            continue
        if expected.any() and not value.any():
            yield f"Your result does not depend on {leaf}."
            return
        reached = np.argwhere((abs(value) > 1e-9) & (abs(expected) < 1e-12))
        if len(reached) and expected.any() and not leaf.startswith("the weight"):
            place = reached[0].tolist()
            yield f"Your result depends on {leaf} at {place}, which must have no influence."
            return


def _seen(
    name: str, value: NDArray[Any], right: NDArray[Any], sizes: Mapping[str, object]
) -> Iterator[str]:
    """At most one sentence on all numbers of a value."""
    if value.dtype.kind == right.dtype.kind == "U":
        yield from _seen_text(name, str(value), str(right))
    elif is_text(value, right):
        return
    elif value.shape != right.shape:
        yield from _seen_axes(name, value, right)
    elif value.dtype == right.dtype == bool:
        if value.shape:
            yield from _seen_mask(name, value, right)
    elif value.dtype.kind == right.dtype.kind:
        yield from _seen_numbers(name, value.astype(float), right.astype(float), sizes)


def _apart(value: Any, right: Any) -> tuple[str, Any, Any]:
    """The place of the first difference in two texts of nested lists, and both parts there."""
    if not (isinstance(value, str) and isinstance(right, str) and value[:2] == right[:2] == "[["):
        return "", value, right
    place, value, right = "", literal_eval(value), literal_eval(right)
    while isinstance(value, list) and len(value) == len(right) and sorted(value) != sorted(right):
        at = next(at for at, each in enumerate(value) if each != right[at])
        if not isinstance(value[at], list):
            break
        place, value, right = f"{place}[{at}]", value[at], right[at]
    return place, value, right


def _seen_text(name: str, value: str, right: str) -> Iterator[str]:
    place, *pair = _apart(value, right)
    comma = ", " if ", " in value + right else " "
    yours, theirs = (each if isinstance(each, list) else each.split(comma) for each in pair)
    shared = next(
        (i for i, both in enumerate(zip(yours, theirs, strict=False)) if both[0] != both[1]), None
    )
    if shared is None:
        counts = (
            f"The number of parts of your {name}{place} is {len(yours)}; right is {len(theirs)}."
        )
        yield f"{counts} The shared begin is right."
    elif sorted(yours) == sorted(theirs) and len(yours) > 1:
        yield "You have the right parts in another order."
    elif not shared:
        yield f"Your {name}{place} differs from its first part on."
    else:
        begin = f"first {shared} of {len(theirs)} are" if shared > 1 else "first part is"
        yield f"The {begin} right in your {name}{place}."


def _seen_axes(name: str, value: NDArray[Any], right: NDArray[Any]) -> Iterator[str]:
    if value.squeeze().shape == right.squeeze().shape:
        yield f"An axis of size 1 is too many, or is missing, in your {name}."
    elif sorted(value.shape) == sorted(right.shape):
        yield f"The axes of your {name} stand in another order."


def _seen_mask(name: str, value: NDArray[Any], right: NDArray[Any]) -> Iterator[str]:
    shown, hidden = np.argwhere(value & ~right).tolist(), np.argwhere(~value & right).tolist()
    if order := _order(value, right):
        yield f"The places of your {name} are right, but {order}."
    elif len(shown) + len(hidden) == value.size and shown and hidden:
        yield f"Your {name} is the other way round: each True should be False."
    elif not hidden:
        yield f"Your {name} shows {_many(shown)}."
    elif not shown:
        yield f"Your {name} hides {_many(hidden)}."
    else:
        yield f"Your {name} shows {shown[0]}, which is hidden, and hides {hidden[0]}."


def _many(places: list[Any]) -> str:
    if len(places) == 1:
        return f"1 place too many, {places[0]}"
    return f"{len(places)} places too many, such as {places[0]}"


def _seen_numbers(
    name: str, value: NDArray[Any], right: NDArray[Any], sizes: Mapping[str, object]
) -> Iterator[str]:
    wrong = ~_close(value, right)
    odd = np.argwhere(~np.isfinite(value) & np.isfinite(right))
    if len(odd):
        places = f"stands at {len(odd)} places of your {name}, first at {odd[0].tolist()}"
        yield f"NaN or infinity {places if value.shape else f'is your {name}'}."
        return
    value, right = np.nan_to_num(value), np.nan_to_num(right)
    if not value.any():
        yield f"All numbers of your {name} are 0." if value.shape else f"Your {name} is 0."
    elif digits := digits_of(value, right):
        yield f"The numbers of your {name} have about {digits} right digits."
    elif value.size > 1 and (relation := _relation(value.reshape(-1), right.reshape(-1))):
        yield f"Each number of your {name} is {relation}."
    elif order := _order(value, right):
        yield f"The numbers of your {name} are right, but {order}."
    elif shown := _shown_zeros(name, value, right) or _sums(name, value, right):
        yield shown
    elif value.ndim > 1 and (words := _by_row(value, right)):
        yield f"Each row of your {name} is {words}."
    elif value.size >= _LISTED and (part := _part(wrong, sizes)):
        yield f"In your {name}, {part}."
    elif value.size > 1 and (value.argsort(-1) == right.argsort(-1)).all():
        yield f"The order of the numbers in each row of your {name} is right, their sizes are not."
    elif (value >= right).all() or (value <= right).all():
        side = "less" if value.sum() > right.sum() else "greater"
        yield f"No number of your {name} is {side} than the right one."


def digits_of(value: NDArray[Any], right: NDArray[Any]) -> int:
    """The number of right digits; 0 if it is below 2, or the shapes or kinds differ."""
    if value.shape != right.shape or not value.dtype.kind == right.dtype.kind == "f":
        return 0
    error, scale = abs(value - right).max(initial=0), abs(right).max(initial=0)
    return int(-np.log10(max(error, 1e-300) / scale)) if 0 < error <= 0.01 * scale else 0


def _order(value: NDArray[Any], right: NDArray[Any]) -> str:
    """The order of a learner's numbers, if they are the right ones; two are so by chance."""
    if right.size < 4 or len(np.unique(right)) < 2:
        return ""
    for axis in range(value.ndim):
        if np.allclose(np.flip(value, axis), right):
            return f"in reverse order along axis {axis}"
    for first in range(value.ndim):
        for second in range(first + 1, value.ndim):
            moved = np.swapaxes(value, first, second)
            if moved.shape == right.shape and np.allclose(moved, right):
                return f"with the axes {first} and {second} exchanged"
    if value.size > _LISTED and np.allclose(np.sort(value, None), np.sort(right, None)):
        return "in other places"
    return ""


def _relation(value: NDArray[Any], right: NDArray[Any]) -> str:
    """ "the right one times 2", or plus 2, or both; empty if it is neither."""
    if np.ptp(right) < 1e-9:
        return ""
    factor, plus = np.polyfit(right, value, 1)
    plain = value.size > 2 or np.isclose(factor, 1) or abs(plus) < 1e-7  # a line meets two points
    fits = np.allclose(right * factor + plus, value, rtol=1e-6, atol=1e-9)
    if plain and fits and abs(factor) > 1e-9:
        times = "" if np.isclose(factor, 1) else f" times {factor:.4g}"
        return f"the right one{times}" + ("" if abs(plus) < 1e-7 else f" plus {plus:.4g}")
    if np.allclose(abs(value), abs(right), atol=1e-9):
        return "the right one, some with the other sign"
    return ""


def _shown_zeros(name: str, value: NDArray[Any], right: NDArray[Any]) -> str:
    """A sentence on numbers where 0 is right, such as the weights of hidden keys."""
    shown = np.argwhere((right == 0) & (value != 0)).tolist()
    if not shown or not right.any() or value.size < 2:
        return ""
    first = f"{value[*shown[0]]:.4g} at {shown[0]}"
    many = f"{len(shown)} numbers of your {name} should be 0, such as {first}"
    return f"{many if len(shown) > 1 else f'A number of your {name} should be 0: {first}'}."


def _sums(name: str, value: NDArray[Any], right: NDArray[Any]) -> str:
    """A sentence on rows whose sum, or sum of squares, is one number only in the right value."""
    rows = right.shape[-1] if right.ndim else 0
    if rows < 2:
        return ""
    for power, words in ((1, "sums"), (2, "sums of squares")):
        yours, theirs = ((each**power).sum(-1) for each in (value, right))
        off = abs(yours - theirs.flat[0])
        known = theirs.size > 1 or np.isclose(theirs.flat[0], (0, 1)).any()
        if known and np.ptp(theirs) < 1e-6 and off.max() > 1e-6:
            shown = yours.flat[off.argmax()]
            return (
                f"The right {name} have rows with {words} of {theirs.flat[0]:.4g};"
                f" a row of yours has {shown:.4g}."
            )
    return ""


def _by_row(value: NDArray[Any], right: NDArray[Any]) -> str:
    yours, theirs = (x.reshape(-1, x.shape[-1]) for x in (value, right))
    if yours.shape[1] < 3 or len(yours) > 99:
        return ""
    if all(_relation(*pair) or np.allclose(*pair) for pair in zip(yours, theirs, strict=True)):
        return "the right one times, or plus, a number of its own"
    return ""


def _part(wrong: NDArray[np.bool_], sizes: Mapping[str, object]) -> str:
    """The index at which alone all is wrong, or right."""
    for axis in range(wrong.ndim):
        others = tuple(each for each in range(wrong.ndim) if each != axis)
        faulty = np.flatnonzero(wrong.any(axis=others)).tolist()
        size = wrong.shape[axis]
        names = [name for name, each in sizes.items() if each == size]
        called = f"axis {axis}" + (f" ({names[0]})" if len(names) == 1 else "")
        if len(faulty) == 1 < size:
            return f"only index {faulty[0]} of {called}, which has {size}, is wrong"
        if len(faulty) == size - 1 > 1:
            [right] = {*range(size)} - {*faulty}
            return f"only index {right} of {called}, which has {size}, is right"
        if 0 < len(faulty) < size:
            return f"the indices {faulty[:6]} of {called} are wrong, the others right"
    return ""


def _both_listed(value: object, right: object) -> tuple[str, str]:
    """``value`` and ``right`` with the fewest digits, of 4, 9 or 12, that show a difference."""
    for digits in (4, 9, 12):
        texts = _listed(value, digits), _listed(right, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _listed(value: object, digits: int) -> str:
    """A number with ``digits`` digits; a list of numbers in brackets."""
    if isinstance(value, list):
        return f"[{', '.join(_listed(each, digits) for each in value)}]"
    return f"{value + 0.0:.{digits}g}" if isinstance(value, float) else str(value)  # never -0
