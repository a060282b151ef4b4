"""Sentences about two arrays, a learner's and the right one: the facts, and never a cause."""

from collections.abc import Iterator
from itertools import combinations, starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.tools.learn.check import CHANGED, GRADIENT, Probe, Results, Values

__all__ = [
    "alike",
    "compared",
    "equal",
    "in_words",
    "is_text",
    "observations",
    "same",
    "situation_of",
]

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
        return f"You change {value.item()} in place."
    if right.dtype == bool and not right.shape:
        return f"{name}."
    if is_text(value, right):
        return f"Your {name} is {str(value.item())[:40]}; right are numbers of shape {right.shape}."
    if value.shape != right.shape:
        return f"The shape of your {name} is {value.shape}; right is {right.shape}."
    if value.dtype.kind != right.dtype.kind:
        return f"The type of your {name} is {value.dtype}; right is {right.dtype}."
    if value.size <= _LISTED:
        shown, expected = _both_listed(value.tolist(), right.tolist())
        return f"Your {name}: {shown}; right is {expected}."
    wrong = np.argwhere(~_close(value, right))
    *row, first = wrong[0].tolist()
    place = (*row, slice(first, first + _SHOWN))
    shown, expected = _both_listed(value[place].tolist(), right[place].tolist())
    return (
        f"Your {name}{[*row, first]} and its row: {shown[1:-1]}; right is {expected[1:-1]}"
        f" ({len(wrong)} of {value.size} numbers differ)."
    )


def observations(values: Values, right: Values) -> Iterator[str]:
    """What the first wrong value shows, and the inputs that have no influence, or too much."""
    for name, value in values.items():
        if equal(value, right[name]):
            continue
        if name == CHANGED:
            return
        if name.startswith(GRADIENT):
            if not value.any():
                leaf = name.removeprefix(GRADIENT)
                yield f"No gradient comes back to {leaf}. Look for detach, .data and no_grad."
            else:
                yield from _seen(name, value, right[name])
            return
        yield from _influences(values, right)
        yield from _seen(name, value, right[name])
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


def _seen(name: str, value: NDArray[Any], right: NDArray[Any]) -> Iterator[str]:
    """At most one sentence on all numbers of a value."""
    if value.dtype.kind == right.dtype.kind == "U":
        yield from _seen_text(str(value), str(right))
    elif is_text(value, right):
        return
    elif value.shape != right.shape:
        yield from _seen_axes(name, value, right)
    elif value.dtype == right.dtype == bool:
        if value.shape:
            yield from _seen_mask(name, value, right)
    elif value.dtype.kind == right.dtype.kind:
        yield from _seen_numbers(name, value.astype(float), right.astype(float))


def _seen_text(value: str, right: str) -> Iterator[str]:
    comma = ", " if ", " in value + right else " "
    yours, theirs = value.split(comma), right.split(comma)
    same = next(
        (i for i, pair in enumerate(zip(yours, theirs, strict=False)) if len({*pair}) > 1), None
    )
    if same is None:
        yield f"You have {len(yours)} parts; right are {len(theirs)}. The shared begin is right."
    elif sorted(yours) == sorted(theirs) and len(yours) > 1:
        yield "You have the right parts in another order."
    elif same:
        yield f"The first {same} of {len(theirs)} are right."


def _seen_axes(name: str, value: NDArray[Any], right: NDArray[Any]) -> Iterator[str]:
    if value.squeeze().shape == right.squeeze().shape:
        yield f"An axis of size 1 is too many, or is missing, in your {name}."
    elif sorted(value.shape) == sorted(right.shape):
        yield f"The axes of your {name} stand in another order."


def _seen_mask(name: str, value: NDArray[Any], right: NDArray[Any]) -> Iterator[str]:
    shown, hidden = np.argwhere(value & ~right).tolist(), np.argwhere(~value & right).tolist()
    if len(shown) + len(hidden) == value.size:
        yield f"Your {name} is the other way round: each True should be False."
    elif not hidden:
        yield f"Your {name} shows {len(shown)} places too many, such as {shown[0]}."
    elif not shown:
        yield f"Your {name} hides {len(hidden)} places too many, such as {hidden[0]}."
    else:
        yield f"Your {name} shows {shown[0]}, which is hidden, and hides {hidden[0]}."


def _seen_numbers(name: str, value: NDArray[Any], right: NDArray[Any]) -> Iterator[str]:
    wrong, scale = ~_close(value, right), abs(right).max(initial=0)
    odd = np.argwhere(~np.isfinite(value) & np.isfinite(right))
    if len(odd):
        first = odd[0].tolist()
        yield f"NaN or infinity stands at {len(odd)} places of your {name}, first at {first}."
        return
    value, right = np.nan_to_num(value), np.nan_to_num(right)
    if not value.any():
        yield f"All numbers of your {name} are 0."
    elif abs(value - right).max() <= 0.01 * scale:
        digits = int(-np.log10(abs(value - right).max() / scale))
        cause = "The error is small"
        if digits > 4:
            float32, added = "float32 has 7: look for .float()", "Look for an added 1e-9"
            cause = float32 if digits < 8 else added
        yield f"Your numbers have about {digits} right digits. {cause}."
    elif value.size > 1 and (relation := _relation(value.reshape(-1), right.reshape(-1))):
        yield f"Each number of your {name} is {relation}."
    elif value.size > _LISTED and np.allclose(np.sort(value, None), np.sort(right, None)):
        yield f"The right numbers stand in other places of your {name}."
    elif value.ndim > 1 and (words := _by_row(value, right)):
        yield f"Each row of your {name} is {words}."
    elif value.size > _LISTED and (part := _part(wrong)):
        yield f"In your {name}, {part}."
    elif value.size > 1 and (value.argsort(-1) == right.argsort(-1)).all():
        yield f"The order of the numbers in each row of your {name} is right, their sizes are not."
    elif (value >= right).all() or (value <= right).all():
        side = "less" if value.sum() > right.sum() else "greater"
        yield f"No number of your {name} is {side} than the right one."


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


def _by_row(value: NDArray[Any], right: NDArray[Any]) -> str:
    yours, theirs = (x.reshape(-1, x.shape[-1]) for x in (value, right))
    if yours.shape[1] < 3 or len(yours) > 99:
        return ""
    if all(_relation(*pair) or np.allclose(*pair) for pair in zip(yours, theirs, strict=True)):
        return "the right one times, or plus, a number of its own"
    return ""


def _part(wrong: NDArray[np.bool_]) -> str:
    """The index at which alone all is wrong, or right."""
    for axis in range(wrong.ndim):
        others = tuple(each for each in range(wrong.ndim) if each != axis)
        faulty = np.flatnonzero(wrong.any(axis=others)).tolist()
        size = wrong.shape[axis]
        if len(faulty) == 1 < size:
            return f"only index {faulty[0]} of axis {axis}, which has {size}, is wrong"
        if len(faulty) == size - 1 > 1:
            [right] = {*range(size)} - {*faulty}
            return f"only index {right} of axis {axis}, which has {size}, is right"
        if 0 < len(faulty) < size:
            return f"the indices {faulty[:6]} of axis {axis} are wrong, the others right"
    return ""


def situation_of(probes: tuple[Probe, ...], right: Results, results: Results) -> str:
    """The axes' value, or two, in which the solution is wrong in all situations, and only there."""
    rows = [
        (each.situation, _passes(results.get(each.__name__), right[each.__name__]))
        for each in probes
        if hasattr(each, "situation")
    ]
    wrong = [row for row, passes in rows if not passes]
    if not wrong or len(wrong) == len(rows):
        return ""
    if len(wrong) == 1:
        return f"Only this of {len(rows)} situations is wrong."
    chosen = [
        (axis, value)
        for axis, value in wrong[0].items()
        if value != "" and any(row.get(axis) != value for row, _ in rows)
    ]
    for count in (1, 2):
        for group in combinations(chosen, count):
            fitting = [passes for row, passes in rows if all(row.get(a) == v for a, v in group)]
            if not any(fitting) and len(fitting) == len(wrong):
                words = " and ".join(starmap(in_words, group))
                return f"It is wrong with this, and only then ({len(wrong)} situations): {words}."
    shared = [(axis, value) for axis, value in chosen if all(x.get(axis) == value for x in wrong)]
    if shared:
        words = " and ".join(starmap(in_words, shared))
        return f"All {len(wrong)} wrong situations have this in common: {words}."
    return f"It is right in {len(rows) - len(wrong)} of {len(rows)} situations."


def in_words(axis: str, value: object) -> str:
    """A value of an axis; all but texts have the axis' name."""
    shown = f"{value:g}" if isinstance(value, int | float) else str(value)
    return value if isinstance(value, str) else f"{axis} {shown}"


def _passes(values: Values | None, right: Values) -> bool:
    return values is not None and all(
        name in values and equal(values[name], value) for name, value in right.items()
    )


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
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
