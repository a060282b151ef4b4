"""The true word links of a phrase and its translation.

Both texts write one value, field by field, so the words of a field belong together: *March* and
*März* are the month of the same date. An aligner must find the sure links and may find the possible
ones, as in hand-made references (Och and Ney 2003, section 6). A comma, or a full stop after a
number, has no counterpart and no link. The words of an amount of money have none either.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

from glassformer.data.phrasebook.forms import Value
from glassformer.data.words import Span, TrueLinks, words

__all__ = ["links_between"]


class Field(NamedTuple):
    """The meaning of a run of words: 3 of the kind month, for March.

    ``item`` is the place of its date or time in the form's value.
    """

    kind: str
    item: int
    number: int


_KINDS = {"y": "yYu", "M": "ML", "d": "d", "E": "Eec", "Q": "Qq", "h": "hHkK", "a": "abB"}
_KIND = {letter: kind for kind, letters in _KINDS.items() for letter in letters}
_ATTRIBUTES = {"y": "year", "M": "month", "d": "day", "h": "hour", "m": "minute", "s": "second"}
_DASHES = "-–—~〜～"


def links_between(value: Value, source: str, target: str) -> TrueLinks:
    """The true links of a value's two texts, marked as by :func:`forms.marked_pattern`.

    Sure: the same field of the same date or time. If a field stands once for two dates, as the
    month of *4.–7. März*, it is linked to each date's field with the same number. Possible: a
    field that only one side repeats, fields of several words, and *PM* with the hour.
    """
    sides = [_side(text, value) for text in (source, target)]
    sure: set[tuple[Span, Span]] = set()
    possible: set[tuple[Span, Span]] = set()
    for left, right in product(*(side.fields for side in sides)):
        pairs = set(product(sides[0].fields[left], sides[1].fields[right]))
        partners = left in sides[1].fields, right in sides[0].fields
        same_number = (left.kind, left.number) == (right.kind, right.number)
        if left == right or (same_number and not any(partners)):
            (sure if len(pairs) == 1 else possible).update(pairs)
        elif (same_number and not all(partners)) or _hour_and_half(left, right, partners):
            possible |= pairs
    if len(sides[0].dashes) == len(sides[1].dashes) == 1:
        sure.add((sides[0].dashes[0], sides[1].dashes[0]))
    return TrueLinks(frozenset(sure), frozenset(sure | possible))


@dataclass
class _Side:
    """The words of each field of a text, and the dashes between fields."""

    fields: dict[Field, list[Span]] = field(default_factory=lambda: defaultdict(list))
    dashes: list[Span] = field(default_factory=list)


def _side(marked: str, value: Value) -> _Side:
    side = _Side()
    text, fields = _unmarked(marked, value)
    for start, end in words(text):
        if fields[start] is not None and text[start].isalnum():
            side.fields[fields[start]].append((start, end))
        elif fields[start] is None and text[start] in _DASHES:
            side.dashes.append((start, end))
    return side


def _unmarked(marked: str, value: Value) -> tuple[str, list[Any]]:
    """The text without marks, and the field of each character, None between fields."""
    text, fields, current = "", [], None
    for character in marked:
        code = ord(character) - 0xE000
        if character == chr(0xEFFF):
            current = None
        elif 0 <= code < 0xFFF:
            item, letter = divmod(code, 128)
            kind = _KIND.get(chr(letter), chr(letter))
            current = Field(kind, item, _number(kind, value[item]))
        else:
            text += character
            fields.append(current)
    return text, fields


def _number(kind: str, part: Any) -> int:
    """The number of a field, the same in all languages: 3 for March."""
    if kind == "E":
        return int(part.weekday())
    if kind == "Q":
        return int(part.month + 2) // 3
    return int(getattr(part, _ATTRIBUTES[kind])) if kind in _ATTRIBUTES else 0


def _hour_and_half(left: Field, right: Field, partners: tuple[bool, bool]) -> bool:
    """Whether one field is AM or PM, which the other side has only in its hour."""
    alike = left.item == right.item and {left.kind, right.kind} == {"a", "h"}
    return alike and not partners[0 if left.kind == "a" else 1]
