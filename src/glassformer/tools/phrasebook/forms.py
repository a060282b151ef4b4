"""The forms of the phrasebook, and the clues by which a form reads a text back.

A form writes a value, such as a date, in any language of the Unicode CLDR, through Babel. One value
in two languages is a sentence pair.

A form needs no second grammar to read. From the numbers and names of a text (:class:`Clues`) each
form guesses values and writes each value in the text's language. If a written value equals the
text, the value is the text's value.

Source: the CLDR as packaged by Babel, with the patterns of Unicode TR 35, parts 2 to 4.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from functools import cached_property
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
    "no_years",
    "normalise",
]

FIRST_YEAR, LAST_YEAR = 1950, 2049  # a hundred years, so that two digits name one year

Locale: TypeAlias = Any  # babel.Locale: Babel is an extra, imported only where it is used
Value: TypeAlias = tuple[Any, ...]
Years: TypeAlias = Sequence[int]

_SPACES = re.compile(r"[\s\u00a0\u2009\u202f]+")
_DIRECTIONS = re.compile("[\u200e\u200f\u061c]")


def normalise(text: str) -> str:
    """The text in the phrasebook's spelling, which a person can type.

    CLDR's no-break, narrow and thin spaces become plain spaces. The function removes
    invisible marks of direction. A hyphen between two spaces becomes the dash of an interval.

    >>> normalise("Mar 4\\u2009-\\u20097,  2021")
    'Mar 4 – 7, 2021'
    """
    return _SPACES.sub(" ", _DIRECTIONS.sub("", text)).strip().replace(" - ", " – ")


@dataclass(frozen=True)
class Clues:
    """The numbers and names of a text in one language, and the possible values of the text."""

    text: str
    locale: Locale

    @cached_property
    def runs(self) -> list[str]:
        """The runs of digits in the text, as strings.

        >>> Clues("CA$1,234.50", None).runs
        ['1', '234', '50']
        """
        return re.findall("[0-9]+", self.text)

    @cached_property
    def numbers(self) -> list[int]:
        return sorted({int(run) for run in self.runs})

    def amounts(self) -> list[Decimal]:
        """The numbers of one to three joined neighbouring runs, whose last run is decimals or not.

        >>> [str(number) for number in Clues("2,5 $", None).amounts()]
        ['2', '2.5', '5', '25']
        """
        amounts = set()
        for size, start in product((1, 2, 3), range(len(self.runs))):
            *head, last = self.runs[start : start + size]
            amounts.add(Decimal("".join([*head, last])))
            amounts |= {Decimal("".join(head) + "." + last)} if head else set()
        return sorted(amounts)

    def names(self, table: Iterable[tuple[Any, str]]) -> list[Any]:
        """The keys of a table whose names occur in the text."""
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

        ``years``, ``months`` and ``days`` hold values to try for parts that a form does not show.
        With ``short_years``, two digits may name a year.
        """
        candidates = {*self.numbers, *years}
        if short_years:
            candidates |= {century + number for number in self.numbers for century in (1900, 2000)}
        parts = product(
            sorted(year for year in candidates if FIRST_YEAR <= year <= LAST_YEAR),
            sorted({*self._months(), *months}),
            sorted({*self.numbers, *days}),
        )
        return [date(*part) for part in parts if 1 <= part[2] <= monthrange(*part[:2])[1]]

    def times(self) -> list[time]:
        """Every time, before and after noon, that the numbers make, with or without seconds."""
        hours = {(number + shift) % 24 for number in self.numbers for shift in (0, 12)}
        sixty = [number for number in self.numbers if number < 60]
        return [time(*part) for part in product(sorted(hours), sixty, sorted({0, *sixty}))]

    def _months(self) -> set[int]:
        widths = product(("format", "stand-alone"), ("wide", "abbreviated", "narrow"))
        tables = [self.locale.months[context][width] for context, width in widths]
        # J names three months in English, and Mongolian's narrow names are Roman numerals. A name
        # in digits is among the numbers already.
        unambiguous = [table for table in tables if len({*table.values()}) == 12]
        months = {
            number
            for table in unambiguous
            for number in self.names(table.items())
            if not table[number].isdigit()
        }
        return months | {number for number in self.numbers if 1 <= number <= 12}


def no_years(_: Value) -> tuple[int, ...]:
    """No years: the ``Form.years`` of a form whose texts show no year."""
    return ()


@dataclass(frozen=True)
class Form:
    """One way to write one kind of value.

    ``draw(rng, years)`` returns a random value whose main year, if any, is one of ``years``.

    ``write(value, locale)`` returns the text, or raises LookupError or ValueError without data.

    ``guess(clues)`` yields the possible values of a text, some outside of the domain.

    ``years(value)`` returns the years that the text shows. ``dated`` says that every text shows a
    year. ``weight`` is the form's share of the training phrases, relative to other forms.
    """

    kind: str
    weight: int
    draw: Callable[[Random, Years], Value]
    write: Callable[[Value, Locale], str]
    guess: Callable[[Clues], Iterable[Value]]
    years: Callable[[Value], tuple[int, ...]] = no_years
    dated: bool = False
