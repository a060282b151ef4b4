"""The forms of numbers that a model has learnt, such as "15:30" and "3rd".

A joint is a sign between a digit and another digit or a letter, or a digit beside a letter, or a
unit such as %. A model knows a number with its signs and letters if it knows each joint, and an
equally long run of digits; other numbers are opaque.
"""

import re
from collections.abc import Collection

from glassformer.data.words import ALNUM, ALPHA, NO_ENTITY, UNSPACED_CLASS, Span

__all__ = [
    "LARGE",
    "RAISED",
    "joints_of",
    "large_numbers",
    "lost_numbers",
    "number_shape",
    "unknown_numbers",
]

RAISED = "²³¹⁰⁴-⁹"
"""The raised digits of notes and powers, as a class."""

LARGE = 13
"""The least large number: a translation has it in digits if the text has it in digits."""

_JOINT = re.compile(r"(?=([a0])([^a0 ]*)([a0]))")
_SIDES = (("0", "0"), ("a", "0"), ("0", "a"))
# Markup, quotation marks and separators may stand beside a word.
_SOLID = rf"(?:{NO_ENTITY}[^\s<>{{}}\[\]`\\)!?;|*^\"“”„«»{UNSPACED_CLASS}])"
_PLACES = {"0": r"\d(?!\uFE0F?\u20E3)", "a": f"(?![{RAISED}]){ALPHA}"}
_SIGN = rf"(?:(?=_|[^\w]){_SOLID})"
_FAR = "{0,40}"  # characters before an unknown joint
_UNITS = "%‰°"
_NUMBER = re.compile(r"\d{1,18}(?:[.,'’\u00a0\u202f]\d{3}(?!\d)){0,5}")
_SPACED = re.compile(r"(?<!\d)\d{1,3}(?: \d{3})+(?!\d)")  # 47 000
_JOINS = r"[-'’.,:/_]"  # signs between a number and a letter or digit of one word
_MONEY = "$€£¥₹"
_ALONE = re.compile(
    rf"(?<!{ALNUM})(?<!{ALNUM}{_JOINS})[#№+−{_MONEY}-]?"
    rf"(?:\d{{1,3}}(?: \d{{3}})+|\d+(?:[-'’.,:/\u00a0\u202f]\d+)*)[{_UNITS}{_MONEY}]?"
    rf"(?!{ALNUM}|{_JOINS}{ALNUM})"
)


def joints_of(text: str) -> set[str]:
    """The joints and runs of digits of a text; "a" is a letter, and "0" a digit.

    >>> sorted(joints_of("At 15:30 the 3rd of A-10."))
    ['0', '00', '0:0', '0a', 'a-0']
    """
    runs = {"0" * len(run) for run in re.findall(r"\d+", text)}
    units = {f"0{unit}" for unit in re.findall(rf"\d([{_UNITS}])", text)}
    shape = re.sub(rf"[\s{UNSPACED_CLASS}{RAISED}]+", " ", text)
    shape = re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", shape))
    joints = (joint for joint in _JOINT.findall(shape) if (joint[0], joint[2]) in _SIDES)
    signed = {left + sign + right for left, signs, right in joints for sign in signs or [""]}
    return runs | units | signed


def number_shape(text: str) -> str:
    """A text with "0" for each run of digits.

    >>> number_shape("$1,250.00 – 3/15/2002")
    '$0,0.0 – 0/0/0'
    """
    return re.sub(r"\d+", "0", text)


def unknown_numbers(joints: Collection[str]) -> str:
    """The pattern of the numbers that have other joints.

    >>> pattern = unknown_numbers(joints_of("At 15:30 the 3rd."))
    >>> [match.group() for match in re.finditer(pattern, "9:00, 3rd, AR-10 and 3.5.")]
    ['AR-10', '3.5']
    """
    unknown = [_PLACES[x] + _PLACES[y] for x, y in _SIDES if x != y and x + y not in joints]
    longest = max((len(joint) for joint in joints if not joint.strip("0")), default=0)
    unknown.append(f"(?:{_PLACES['0']}){{{longest + 1}}}")
    for left, right in _SIDES:
        signs = [joint[1:-1] for joint in joints if joint[0] + joint[-1] == left + right]
        signs = [*signs, *(".," if left != right else "")]  # as in "1.A", without a space
        odd = "".join(f"(?!{re.escape(sign)})" for sign in signs if sign) + _SIGN
        unknown.append(f"{_PLACES[left]}{_SIGN}{{0,9}}?{odd}{_SIGN}{{0,9}}?{_PLACES[right]}")
    start = f"(?<!{ALNUM})"
    units = "".join(unit for unit in _UNITS if f"0{unit}" not in joints)
    number = rf"{start}(?={_SOLID}{_FAR}?(?:{'|'.join(unknown)})){ALNUM}(?:{_SOLID}*{ALNUM})?"
    return rf"{start}\d(?:[\d.,]{_FAR}\d)?[{units}]|{number}" if units else number


def large_numbers(text: str) -> list[Span]:
    """The spans of numbers from 13 on that are no part of a word, with signs such as $ and %.

    >>> text = "47 of 5 at 17:30, $60 and 1 250 in the 1990s. 我有93本书。"
    >>> [text[slice(*span)] for span in large_numbers(text)]
    ['47', '17:30', '$60', '1 250', '93']
    """
    spans = [match.span() for match in _ALONE.finditer(text)]
    return [(start, end) for start, end in spans if lost_numbers(text[start:end], "", least=LARGE)]


def lost_numbers(source: str, target: str, *, least: int = 25) -> list[str]:
    """The numbers of ``source``, from ``least`` on, that ``target`` lacks.

    A translation may have a small number as a word, 3 o'clock for 15 o'clock, and a year in two
    digits.

    >>> lost_numbers("1,200 on 4/20/1998, at 17:30", "1200 am 20.4.98 um 5:30", least=13)
    []
    >>> lost_numbers("4 on March 4, 2030 and 2031", "am 4. März 2030")
    ['2031']
    """
    wanted, found = (
        [str(int(re.sub(r"\D", "", number))) for number in _NUMBER.findall(_together(text))]
        for text in (source, target)
    )
    there = {*found, *(number[2:] for number in found if len(number) == 4)}
    return [
        number
        for number in wanted
        if int(number) >= least
        and number not in there
        and not (len(number) == 4 and str(int(number[2:])) in there)
        and not (int(number) < 25 and str(int(number) % 12) in there)
    ]


def _together(text: str) -> str:
    return _SPACED.sub(lambda number: number[0].replace(" ", ""), text)
