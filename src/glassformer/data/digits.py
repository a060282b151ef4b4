"""The forms of numbers that a model has learnt, such as "15:30" and "3rd".

A joint is a sign between a digit and another digit or a letter, or a digit beside a letter. A model
knows a number with its signs and letters if it knows each joint; other numbers are opaque.
"""

import re
from collections.abc import Collection

from glassformer.data.words import UNSPACED_CLASS

__all__ = ["RAISED", "joints_of", "unknown_numbers"]

RAISED = "²³¹⁰-₉"
"""The small digits of notes and formulas, as a class."""

_JOINT = re.compile(r"(?=([a0])([^a0 ]*)([a0]))")
_SIDES = (("0", "0"), ("a", "0"), ("0", "a"))
_SOLID = rf"[^\s<>{{}}\[\]`\\{UNSPACED_CLASS}]"  # markup may stand beside a word
_PLACES = {"0": r"\d(?!\uFE0F?\u20E3)", "a": rf"(?![{UNSPACED_CLASS}{RAISED}])[^\W\d_]"}
_SIGN = rf"(?:(?=_|[^\w]){_SOLID})"
_FAR = "{0,40}"  # characters before an unknown joint


def joints_of(text: str) -> set[str]:
    """The joints of a text; "a" is a letter, and "0" a digit.

    >>> sorted(joints_of("At 15:30 the 3rd of A-10."))
    ['0:0', '0a', 'a-0']
    """
    shape = re.sub(rf"[\s{UNSPACED_CLASS}{RAISED}]+", " ", text)
    shape = re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", shape))
    joints = (joint for joint in _JOINT.findall(shape) if (joint[0], joint[2]) in _SIDES)
    return {left + sign + right for left, signs, right in joints for sign in signs or [""]}


def unknown_numbers(joints: Collection[str]) -> str:
    """The pattern of the numbers that have other joints.

    >>> pattern = unknown_numbers(joints_of("At 15:30 the 3rd."))
    >>> [match.group() for match in re.finditer(pattern, "9:00, 3rd, AR-10 and 3.5.")]
    ['AR-10', '3.5']
    """
    unknown = [_PLACES[x] + _PLACES[y] for x, y in _SIDES if x != y and x + y not in joints]
    for left, right in _SIDES:
        signs = (joint[1:-1] for joint in joints if joint[0] + joint[-1] == left + right)
        odd = "".join(f"(?!{re.escape(sign)})" for sign in signs if sign) + _SIGN
        unknown.append(f"{_PLACES[left]}{_SIGN}{{0,9}}?{odd}{_SIGN}{{0,9}}?{_PLACES[right]}")
    start = rf"(?<!(?![{UNSPACED_CLASS}])[^\W_])"
    return rf"{start}(?={_SOLID}{_FAR}?(?:{'|'.join(unknown)}))[^\W_](?:{_SOLID}*[^\W_])?"
