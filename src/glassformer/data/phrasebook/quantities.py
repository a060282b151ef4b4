"""The phrasebook's units, amounts of money and lists."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from functools import cache
from itertools import chain, permutations, product
from random import Random
from typing import Any, Literal, TypeAlias, TypeVar

from glassformer.data.phrasebook.calendar import (
    SPANS,
    draw_count,
    draw_date,
    shown_years,
    write_date,
)
from glassformer.data.phrasebook.forms import Clues, Form, Locale, Value, Years, marked, normalise

__all__ = ["QUANTITY_FORMS"]

Key = TypeVar("Key", bound=Hashable)
ListStyle: TypeAlias = Literal["standard", "or"]

CURRENCIES = ("USD", "EUR", "GBP", "JPY", "CHF", "INR", "CAD", "AUD", "SEK", "PLN")
UNITS = (
    *(f"duration-{span}" for span in SPANS),
    *(f"length-{x}" for x in ("millimeter", "centimeter", "meter", "kilometer", "foot", "mile")),
    *(f"mass-{x}" for x in ("gram", "kilogram", "ounce", "pound")),
    *("volume-liter", "volume-gallon", "volume-teaspoon", "area-square-meter", "area-hectare"),
    *("digital-byte", "digital-megabyte", "power-watt", "energy-kilowatt-hour", "electric-volt"),
    *("temperature-celsius", "speed-kilometer-per-hour"),
)
TERRITORIES = "DE FR IT ES PT PL NL BE AT CH SE NO DK FI GR TR CN JP IN BR MX CA US EG KE ZA AU"
LANGUAGES = "de en fr it es pt pl nl sv da fi el tr ru zh ja hi ar ko hu cs"
GROUPS: dict[str, list[Any]] = {
    "weekday": list(range(7)),
    "month": list(range(1, 13)),
    "territory": TERRITORIES.split(),
    "language": LANGUAGES.split(),
}


def _distinct(keys: Iterable[Key], spell: Callable[[Key], list[str]]) -> dict[Key, list[str]]:
    """What the locale calls each key; without what it lacks or calls like an earlier one."""
    table: dict[Key, list[str]] = {}
    for key in keys:
        with suppress(LookupError, ValueError):
            texts = [normalise(text) for text in spell(key)]
            if not {*texts} & {text for known in table.values() for text in known}:
                table[key] = texts
    return table


@cache
def _units(locale: Locale) -> dict[str, list[str]]:
    from babel.units import format_unit

    return _distinct(UNITS, lambda unit: [format_unit(n, unit, locale=locale) for n in (1, 2, 5)])


def _unit_form(weight: int) -> Form:
    def draw(rng: Random, _: Years) -> Value:
        count = draw_count(rng, 3)
        tenths = Decimal(rng.randint(1, 9)) / 10 if count < 100 and rng.random() < 0.3 else 0
        return rng.choice(UNITS), count + tenths

    def write(value: Value, locale: Locale) -> str:
        from babel.units import format_unit

        unit, count = value
        if unit not in _units(locale):
            raise LookupError(unit)
        return format_unit(count, unit, locale=locale)

    def guess(clues: Clues) -> Iterator[Value]:
        counts = clues.quantities()
        whole = [count for count in counts if 1 <= count < 1000 and not count % 1]
        tenths = [count for count in counts if 1 < count < 100 and count % 1 and not count * 10 % 1]
        return product(UNITS, whole + tenths)

    return Form("unit", "long", weight, draw, write, guess)


@cache
def _currencies(locale: Locale) -> dict[str, list[str]]:
    from babel.numbers import get_currency_name, get_currency_symbol

    return _distinct(
        CURRENCIES,
        lambda code: [get_currency_symbol(code, locale), get_currency_name(code, 2, locale)],
    )


def _amount_form(style: Literal["standard", "name"], weight: int) -> Form:
    """``style``: Babel's ``standard`` ($3.00) or ``name`` (3.00 US dollars)."""

    def draw(rng: Random, _: Years) -> Value:
        code = rng.choice(CURRENCIES)
        whole = draw_count(rng, 4)
        return code, whole + (0 if code == "JPY" else Decimal(rng.randrange(100)) / 100)

    def write(value: Value, locale: Locale) -> str:
        from babel.numbers import format_currency, get_currency_precision

        code, amount = value
        if code not in _currencies(locale):
            raise LookupError(code)
        # The plural sees the decimals that are written: 1 US dollar, but 1.00 US dollars.
        amount = amount.quantize(Decimal(1).scaleb(-get_currency_precision(code)))
        return format_currency(amount, code, locale=locale, format_type=style)

    def guess(clues: Clues) -> Iterator[Value]:
        amounts = [amount for amount in clues.quantities() if 1 <= amount < 10000]
        return product(CURRENCIES, amounts)

    # An amount such as $1,953.00 shows a year's digits: it is held out with that year.
    return Form("amount", style, weight, draw, write, guess, lambda value: (int(value[1]),))


@cache
def _names(locale: Locale) -> dict[tuple[str, Any], list[str]]:
    """What the locale calls the members of :data:`GROUPS`, as they stand alone."""
    tables = {
        "weekday": locale.days["stand-alone"]["wide"],
        "month": locale.months["stand-alone"]["wide"],
        "territory": locale.territories,
        "language": locale.languages,
    }
    keys = [(group, key) for group, members in GROUPS.items() for key in members]
    return _distinct(keys, lambda key: [tables[key[0]][key[1]]])


def _orders(found: list[Any], most: int) -> Iterator[Value]:
    """Every order of two to ``most`` of the first eight: the time of an answer stays bounded."""
    return chain.from_iterable(permutations(found[:8], size) for size in range(2, most + 1))


def _write_list(items: list[str], style: ListStyle, locale: Locale) -> str:
    from babel.lists import format_list

    if len({*map(normalise, items)}) < len(items):
        raise ValueError(f"a list that repeats an item: {items}")
    return format_list(items, style=style, locale=locale)


def _list_form(style: ListStyle, weight: int) -> Form:
    """Two to four names of one group; ``style``: Babel's ``standard`` (and) or ``or``."""

    def draw(rng: Random, _: Years) -> Value:
        group = rng.choice(list(GROUPS))
        return tuple((group, key) for key in rng.sample(GROUPS[group], rng.randint(2, 4)))

    def write(value: Value, locale: Locale) -> str:
        names = _names(locale)
        items = [marked(names[key][0], "n", item) for item, key in enumerate(value)]
        return _write_list(items, style, locale)

    def guess(clues: Clues) -> Iterator[Value]:
        found = clues.names((item, texts[0]) for item, texts in _names(clues.locale).items())
        for group in GROUPS:
            yield from _orders([item for item in found if item[0] == group], 4)

    return Form("list", style, weight, draw, write, guess)


def _date_list_form(name: str, weight: int, most: int) -> Form:
    """Two to ``most`` dates in the style ``name``."""

    def guess(clues: Clues) -> Iterator[Value]:
        days = clues.dates(days=() if name == "long" else (1,))
        texts = {normalise(write_date(day, name, clues.locale)): day for day in reversed(days)}
        return _orders(clues.names((day, text) for text, day in texts.items()), most)

    return Form(
        "list",
        name,
        weight,
        draw=lambda rng, years: tuple(draw_date(rng, years) for _ in range(rng.randint(2, most))),
        write=lambda value, locale: _write_list(
            [write_date(day, name, locale, item=item) for item, day in enumerate(value)],
            "standard",
            locale,
        ),
        guess=guess,
        years=shown_years,
        dated=True,
    )


QUANTITY_FORMS = (
    _unit_form(7),
    _amount_form("standard", 3),
    _amount_form("name", 2),
    _list_form("standard", 3),
    _list_form("or", 1),
    _date_list_form("long", 2, 2),
    _date_list_form("yMMMM", 1, 3),
)
