"""Which words of a phrase and of its translation mean the same: known from how both were made.

Both texts write one value, field by field, so the words of a field belong together: *March* and
*März* are the month of the same date. The links come in two kinds, as in hand-made references
(Och and Ney 2003, section 6): sure ones, which an aligner must find, and possible ones, which it
may. A comma, or a full stop after a number, has no counterpart, and is in no link.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

from glassformer.data.phrasebook.forms import Value
from glassformer.data.words import Span, TrueLinks, words

__all__ = ["links_between"]


class Field(NamedTuple):
    """What a run of words says: its kind, the part of the value it is of, and its number there."""

    kind: str
    item: int
    number: int


_KINDS = {"y": "yYu", "M": "ML", "d": "d", "E": "Eec", "Q": "Qq", "h": "hHkK", "a": "abB"}
_KIND = {letter: kind for kind, letters in _KINDS.items() for letter in letters}
_DASHES = "-–—~〜～"


def links_between(value: Value, source: str, target: str) -> TrueLinks:
    """The true links of a value's two texts, whose fields are marked (``phrase_forms.marked``).

    Sure: the same field of the same part of the value. Where a field stands once for two parts, as
    the month of *4.–7. März*, each part's field with the same number will do. Also possible: a
    field that is repeated on one side only, fields of several words, and *PM* with the hour.
    """
    sides = [_side(text, value) for text in (source, target)]
    sure: set[tuple[tuple[int, int], tuple[int, int]]] = set()
    possible: set[tuple[tuple[int, int], tuple[int, int]]] = set()
    for one, other in product(*(side.fields for side in sides)):
        pairs = set(product(sides[0].fields[one], sides[1].fields[other]))
        partners = sides[1].fields.keys() & {one}, sides[0].fields.keys() & {other}
        if one == other or (one[::2] == other[::2] and not any(partners)):
            (sure if len(pairs) == 1 else possible).update(pairs)
        elif (one[::2] == other[::2] and not all(partners)) or _hour_and_half(one, other, partners):
            possible |= pairs
    for first, second in zip(sides[0].between, sides[1].between, strict=True):
        if len(first) == len(second) == 1:
            sure.add((first[0], second[0]))
    return TrueLinks(frozenset(sure), frozenset(sure | possible))


@dataclass
class _Side:
    """The words of each field of a text; between the fields, its dashes and its other words."""

    fields: dict[Field, list[Span]] = field(default_factory=lambda: defaultdict(list))
    between: tuple[list[Span], list[Span]] = field(default_factory=lambda: ([], []))


def _side(marked: str, value: Value) -> _Side:
    side = _Side()
    text, fields = _unmarked(marked, value)
    for start, end in words(text):
        if fields[start] is not None and text[start].isalnum():
            side.fields[fields[start]].append((start, end))
        elif fields[start] is None and text[start] in _DASHES:
            side.between[0].append((start, end))
        elif fields[start] is None and text[start].isalnum():
            side.between[1].append((start, end))
    return side


def _unmarked(marked: str, value: Value) -> tuple[str, list[Any]]:
    """The text without marks, and the field of each character, None between fields."""
    text, fields, now = "", [], None
    for character in marked:
        code = ord(character) - 0xE000
        if character == chr(0xEFFF):
            now = None
        elif 0 <= code < 0xFFF:
            item, letter = divmod(code, 128)
            kind = _KIND.get(chr(letter), chr(letter))
            now = Field(kind, item, _number(kind, value[item]))
        else:
            text += character
            fields.append(now)
    return text, fields


def _number(kind: str, part: Any) -> int:
    """What a field says, the same in all languages: 3 for March."""
    if kind == "E":
        return int(part.weekday())
    if kind == "Q":
        return int(part.month + 2) // 3
    names = {"y": "year", "M": "month", "d": "day", "h": "hour", "m": "minute", "s": "second"}
    return int(getattr(part, names[kind])) if kind in names else 0


def _hour_and_half(one: Field, other: Field, partners: tuple[set[Field], set[Field]]) -> bool:
    """Whether one is AM or PM, which the other side has only in its hour."""
    alike = one.item == other.item and {one.kind, other.kind} == {"a", "h"}
    return alike and not partners[0 if one.kind == "a" else 1]
