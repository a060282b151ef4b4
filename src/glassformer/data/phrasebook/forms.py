"""What the phrasebook's forms are made of: the form itself, and how a text is read back.

A form turns a value that belongs to no language (a date, an amount, three weekdays) into the text
of any language that the Unicode CLDR describes, through Babel. Writing one value in two languages
gives a sentence pair. Reading is writing too: from the numbers and names of a text
(:class:`Clues`) a form guesses the values that it can stand for; each is written in the text's
own language, and the one whose writing is the text is the right one. So there is no second
grammar that could disagree with the first.

Source: the CLDR as packaged by Babel; its patterns are those of Unicode TR 35, parts 2 to 4.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from functools import cache, cached_property
from itertools import product
from random import Random
from typing import Any, TypeAlias

__all__ = [
    "FIRST_YEAR",
    "LAST_YEAR",
    "Clues",
    "Form",
    "Locale",
    "Value",
    "Years",
    "marked",
    "marked_pattern",
    "month_length",
    "no_years",
    "normalise",
    "spelt",
]

FIRST_YEAR, LAST_YEAR = 1950, 2049  # a hundred years, so that two digits name one of them

Locale: TypeAlias = Any  # babel.Locale: Babel is an extra, imported only where it is used
Value: TypeAlias = tuple[Any, ...]
Years: TypeAlias = Sequence[int]

_SPACES = re.compile(r"[\s\u00a0\u2009\u202f]+")
_MARKS = re.compile("[\u200e\u200f\u061c\ue000-\uefff]")  # of direction; of fields (`marked`)


def normalise(text: str) -> str:
    """The text as the phrasebook spells it, on both sides, so that a person can type it.

    CLDR's no-break, narrow and thin spaces become plain ones, invisible marks of direction go,
    and a hyphen between two spaces is the dash of an interval.

    >>> normalise("Mar 4\\u2009-\\u20097,  2021")
    'Mar 4 – 7, 2021'
    """
    return spelt(_MARKS.sub("", text))


def spelt(text: str) -> str:
    """:func:`normalise` for spaces and dashes alone."""
    return _SPACES.sub(" ", text).strip().replace(" - ", " – ")


def marked(text: str, field: str, item: int) -> str:
    """The text of a field between two private characters, which :func:`normalise` takes out.

    ``field`` is the CLDR's letter of it (``y`` for the year), ``item`` the place in the value of
    what it says something of. The marks tell which words of two languages mean the same.

    >>> normalise(marked("March", "M", 0) + " 4")
    'March 4'
    """
    return f"{chr(0xE000 + 128 * item + ord(field))}{text}{chr(0xEFFF)}"


@cache
def marked_pattern(pattern: str, item: int = 0) -> Any:
    """Babel's form of a CLDR pattern for dates or times, which marks the fields that it writes."""
    from babel.dates import DateTimePattern, parse_pattern

    plain: Any = parse_pattern(pattern).format  # as in "%(MMMM)s %(d)s"
    with_marks: Any = re.sub(r"%\((.).*?\)s", lambda field: marked(field[0], field[1], item), plain)
    return DateTimePattern(pattern, with_marks)


@dataclass(frozen=True)
class Clues:
    """The numbers and names of a text in one language, and the values that they can make."""

    text: str
    locale: Locale

    @cached_property
    def runs(self) -> list[str]:
        """The runs of digits, as they stand.

        >>> Clues("CA$1,234.50", None).runs
        ['1', '234', '50']
        """
        return re.findall("[0-9]+", self.text)

    @cached_property
    def numbers(self) -> list[int]:
        return sorted({int(run) for run in self.runs})

    def quantities(self) -> list[Decimal]:
        """Neighbouring runs joined over their separators; also 1 and 2, words in some languages.

        >>> [str(number) for number in Clues("2,5 km", None).quantities()]
        ['1', '2', '2.5', '5', '25']
        """
        found = {Decimal(1), Decimal(2)}
        for size, start in product((1, 2, 3), range(len(self.runs))):
            *head, last = self.runs[start : start + size]
            found.add(Decimal("".join([*head, last])))
            found |= {Decimal("".join(head) + "." + last)} if head else set()
        return sorted(found)

    def names(self, table: Iterable[tuple[Any, str]]) -> list[Any]:
        """The keys of a table whose texts occur."""
        return [key for key, text in table if text in self.text]

    def dates(
        self,
        *,
        years: Iterable[int] = (),
        months: Iterable[int] = (),
        days: Iterable[int] = (),
        short_years: bool = False,
    ) -> list[date]:
        """Every date of the domain that the numbers and the names of months make.

        ``years``, ``months``, ``days``: what to try besides, for a form that leaves them out.
        ``short_years``: two digits may name a year as well.
        """
        found = {*self.numbers, *years}
        if short_years:
            found |= {century + number for number in self.numbers for century in (1900, 2000)}
        parts = product(
            sorted(year for year in found if FIRST_YEAR <= year <= LAST_YEAR),
            sorted({*self._months(), *months}),
            sorted({*self.numbers, *days}),
        )
        return [date(*part) for part in parts if 1 <= part[2] <= month_length(*part[:2])]

    def times(self) -> list[time]:
        """Every time that the numbers make, before and after noon; seconds may be absent."""
        hours = {(number + shift) % 24 for number in self.numbers for shift in (0, 12)}
        sixty = [number for number in self.numbers if number < 60]
        return [time(*part) for part in product(sorted(hours), sixty, sorted({0, *sixty}))]

    def _months(self) -> set[int]:
        widths = product(("format", "stand-alone"), ("wide", "abbreviated", "narrow"))
        tables = [self.locale.months[context][width] for context, width in widths]
        # J names three months in English; Mongolian's narrow names are the Roman numerals. Names
        # that are numerals again are among the numbers.
        clear = [table for table in tables if len({*table.values()}) == 12]
        named = {
            number
            for table in clear
            for number in self.names(table.items())
            if not table[number].isdigit()
        }
        return named | {number for number in self.numbers if 1 <= number <= 12}


def month_length(year: int, month: int) -> int:
    return (date(year + month // 12, month % 12 + 1, 1) - date(year, month, 1)).days


def no_years(value: Value) -> tuple[int, ...]:  # noqa: ARG001 (the signature of Form.years)
    return ()


@dataclass(frozen=True)
class Form:
    """One way to say one kind of thing.

    ``draw(rng, years)``: a random value whose main year, if it has one, is one of ``years``.
    ``write(value, locale)``: its text, fields marked; LookupError or ValueError where the locale
    lacks the data.
    ``guess(clues)``: the values of the domain that a text can stand for (may hold others too).
    ``years(value)``: the years that the text shows. ``dated``: every text shows one.
    ``weight``: its share of the training phrases, relative to the others.
    """

    kind: str
    name: str
    weight: int
    draw: Callable[[Random, Years], Value]
    write: Callable[[Value, Locale], str]
    guess: Callable[[Clues], Iterable[Value]]
    years: Callable[[Value], tuple[int, ...]] = no_years
    dated: bool = False
