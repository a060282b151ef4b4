"""Sentences about all situations of a hole: where a solution is wrong, or would be right."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

from glassformer.tools.learn.check import (
    CHANGED,
    GRADIENT,
    Results,
    Solution,
    Values,
    measure,
    values_of,
)
from glassformer.tools.learn.observed import alike, digits_of, equal

__all__ = [
    "cause_of",
    "gradients_seen",
    "in_words",
    "right_parts",
    "situation_of",
    "supposed",
]


def situation_of(probes: Sequence[Any], right: Results, results: Results) -> str:
    """The values of one or two axes with which all situations are wrong, and only those."""
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
    narrow = dict(_narrow([row for row, _ in rows], wrong))
    groups = [group for count in (1, 2) for group in combinations(narrow, count)]
    for group in sorted(groups, key=lambda group: sum(len(narrow[axis][0]) for axis in group)):
        fitting = [passes for row, passes in rows if _fits(row, group, narrow)]
        if not any(fitting):
            first = sorted(group, key=lambda axis: len(narrow[axis][0]))
            words = ", and ".join(narrow[axis][1] for axis in first)
            return f"It is wrong with this, and only then ({len(wrong)} situations): {words}."
    shared = [axis for axis, (values, _) in narrow.items() if len(values) == 1]
    if shared:
        words = " and ".join(narrow[axis][1] for axis in shared)
        others = sum(passes and _fits(row, shared, narrow) for row, passes in rows)
        shown = f"have {others} right ones" if others > 1 else "has a right one"
        also = f"; so {shown}" if others else ""
        return f"All {len(wrong)} wrong situations have this in common: {words}{also}."
    return f"It is right in {len(rows) - len(wrong)} of {len(rows)} situations."


def _narrow(rows: Sequence[Any], wrong: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Each axis that has few values in the wrong rows, or all but one: these values, in words."""
    for axis in wrong[0]:
        values = [*dict.fromkeys(row.get(axis, "") for row in wrong)]
        others = [*({row.get(axis, "") for row in rows} - {*values})]
        few = len(wrong) < 4  # a few situations have any two values by chance
        if others and "" not in values and len(values) <= (1 if few else 2):
            yield axis, (values, _either(axis, values))
        elif len(others) == 1 and not few and others != [""] and axis != "gradients":
            yield axis, (values, f"anything but {in_words(axis, *others)}")


def _fits(row: Any, axes: Iterable[str], narrow: dict[str, Any]) -> bool:
    return all(row.get(axis, "") in narrow[axis][0] for axis in axes)


def supposed(
    probes: Sequence[Any], right: Results, results: Results, solution: Solution
) -> Iterator[str]:
    """The other inputs with which all wrong values of a learner would be right, if there are some.

    ``solution`` is the right one, which answers for the other inputs.
    """
    every = [each for each in probes if not alike(results.get(each.__name__), right[each.__name__])]
    wrong = [each for each in every if hasattr(each, "supposed")]
    if not all(each.__name__ in results for each in wrong):
        return
    fitting: list[Any] = []
    names: dict[str, Any] = {}
    for number, each in enumerate(wrong):
        others, yours = dict(each.supposed()), results[each.__name__]
        known = right[each.__name__]
        yours = {name: x for name, x in yours.items() if not equal(x, known[name])}
        names |= {name: None for name in yours if not name.startswith(GRADIENT)}
        fitting = [
            key
            for key in (fitting if number else others)
            if key in others and _is_answer(yours, others[key], solution)
        ]
    if not fitting:
        return
    axis, value = fitting[0]
    before = _either(axis, dict.fromkeys(each.situation.get(axis, "") for each in wrong))
    words, after = f"With {in_words(axis, value)}", ""
    if value == "":
        words, after = "If this is left out", f": {before}"
    elif before:
        words += f" in place of {before}"
    where = "" if len(wrong) == len(every) else " in all situations"
    yield f"{words}, your {_listed([*names])} would be right{where}{after}."


def _is_answer(yours: Values, other: Any, solution: Solution) -> bool:
    theirs = measure((other,), solution, gradients=False).get(other.__name__, {})
    kept = [name for name in yours if not name.startswith(GRADIENT)]
    return all(name in theirs and equal(yours[name], theirs[name]) for name in kept)


def gradients_seen(probe: Any, values: Values, right: Values, solution: Solution) -> Iterator[str]:
    """Which gradients are right, and the parts of the answer through which some do not come."""
    leaves = [each for each in values if each.startswith(GRADIENT)]
    wrong = [each for each in leaves if not equal(values[each], right[each])]
    fine = [each for each in leaves if each not in wrong]
    also = f", and the gradients with respect to {_names(fine)}" if fine else ""
    yield f"All your values are right{also}."
    yield f"A gradient is wrong with respect to {_names(wrong)}."
    outputs = [
        each for each, value in values.items() if each not in leaves and value.dtype == float
    ]
    for name in outputs if len(outputs) > 1 else ():
        through = values_of(probe, solution, of=name)
        if all(equal(values[each], right[each] - through[each]) for each in wrong):
            yield f"No gradient comes back to {_names(wrong)} through your {name}."


def cause_of(probes: Sequence[Any], right: Results, results: Results) -> Iterator[str]:
    """A guess from the number of right digits, if it fits all wrong values, of float64 alone."""
    digits, types = set(), set()
    for probe in probes:
        for name, value in results.get(probe.__name__, {}).items():
            expected = right[probe.__name__][name]
            if not name.startswith(GRADIENT) and not equal(value, expected):
                digits.add(digits_of(value, expected))
                types.add(getattr(probe, "situation", {"type": "float64"})["type"])
    if types == {"float64"} and 5 <= min(digits) < 8:
        yield "float32 has 7 digits: look for .float()."
    elif types == {"float64"} and min(digits) >= 8:
        yield "Look for an added 1e-9."


def right_parts(right: Results, results: Results) -> Iterator[str]:
    """The names of the values that are right in all probes, if others are wrong."""
    fits: dict[str, bool] = {}
    for probe, values in results.items():
        for name, value in values.items():
            if name != CHANGED and not name.startswith(GRADIENT) and name[0].islower():
                fits[name] = fits.get(name, True) and equal(value, right[probe][name])
    names = [name for name, is_right in fits.items() if is_right and "type of" not in name]
    if names and not all(fits.values()):
        yield f"Right in all situations: your {_listed(names)}."


def in_words(axis: str, value: object) -> str:
    """A value of an axis; all but texts have the axis' name."""
    shown = f"{value:g}" if isinstance(value, int | float) else str(value)
    return value if isinstance(value, str) else f"{axis} {shown}"


def _names(leaves: Sequence[str]) -> str:
    """The inputs of gradients by their names, and the number of weights if there are many."""
    names = [each.removeprefix(GRADIENT) for each in leaves]
    weights = [each for each in names if each.startswith("the weight")]
    if len(weights) > 2:
        names = [each for each in names if each not in weights] + [f"{len(weights)} weights"]
    return _listed(names)


def _listed(names: Sequence[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def _either(axis: str, values: Any) -> str:
    words = [*filter(None, (in_words(axis, each) for each in values))]
    return " or ".join([*words[:2], "others"] if len(words) > 2 else words)


def _passes(values: Values | None, right: Values) -> bool:
    return values is not None and all(
        name in values and equal(values[name], value) for name, value in right.items()
    )
