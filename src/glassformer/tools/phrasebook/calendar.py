"""The phrasebook's dates, intervals and times of day."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, time
from itertools import combinations, product
from random import Random
from typing import Any

from glassformer.tools.phrasebook.forms import (
    FIRST_YEAR,
    LAST_YEAR,
    Clues,
    Form,
    Locale,
    Value,
    Years,
    no_years,
    normalise,
)

__all__ = ["CALENDAR_FORMS"]

LEAP_YEAR = 2000  # the year of a form without a year; it has 29 February
_UNDATED = ("MMMMd", "MMMd")
# For a style that shows only a part of the date, the values of the missing parts.
_MISSING_PARTS: dict[str, dict[str, Any]] = {
    "y": {"months": [1], "days": [1]},
    "yMMMM": {"days": [1]},
    "yQQQQ": {"months": [1, 4, 7, 10], "days": [1]},
    "MMMMd": {"years": [LEAP_YEAR]},
    "MMMd": {"years": [LEAP_YEAR]},
    "short": {"short_years": True},
}


def _shown_years(value: Value) -> tuple[int, ...]:
    return tuple(part.year for part in value if isinstance(part, date))


def _draw_date(rng: Random, years: Years) -> date:
    year, month = rng.choice(years), rng.randint(1, 12)
    return date(year, month, rng.randint(1, monthrange(year, month)[1]))


def _draw_time(rng: Random, *, seconds: bool) -> time:
    return time(rng.randrange(24), rng.randrange(60), rng.randrange(60) if seconds else 0)


def _write_date(day: date, name: str, locale: Locale) -> str:
    """The date in a style (``long``) or by a skeleton (``yMMMM``)."""
    patterns = locale.datetime_skeletons if name[0] in "yM" else locale.date_formats
    return str(patterns[name].apply(day, locale))


def _date_form(name: str, weight: int) -> Form:
    return Form(
        "date",
        weight,
        draw=lambda rng, years: (_draw_date(rng, years),),
        write=lambda value, locale: _write_date(value[0], name, locale),
        guess=lambda clues: ((day,) for day in clues.dates(**_MISSING_PARTS.get(name, {}))),
        years=no_years if name in _UNDATED else _shown_years,
        dated=name not in _UNDATED,
    )


def _interval_form(skeleton: str, weight: int, spans: str) -> Form:
    """The form of an interval; ``draw`` picks the largest field of difference from ``spans``."""

    def draw(rng: Random, years: Years) -> Value:
        start, end = _draw_date(rng, years), _draw_date(rng, years)
        span = rng.choice(spans)
        year = start.year + (rng.choice((-1, 1)) * rng.randint(1, 9) if span == "y" else 0)
        month = start.month if span == "d" else end.month
        return tuple(sorted((start, date(year, month, min(end.day, monthrange(year, month)[1])))))

    def write(value: Value, locale: Locale) -> str:
        from babel.dates import parse_pattern

        start, end = value
        if start == end:
            raise ValueError(f"no interval: both ends are {start}")
        field = "y" if start.year != end.year else "M" if start.month != end.month else "d"
        # Raises KeyError if the skeleton cannot show this field. Babel's format_interval would
        # write both ends by its fallback pattern.
        patterns = map(parse_pattern, locale.interval_formats[skeleton][field])
        return "".join(p.apply(day, locale) for p, day in zip(patterns, value, strict=True))

    def guess(clues: Clues) -> Iterator[Value]:
        days = clues.dates(**_MISSING_PARTS.get(skeleton, {}))
        years = {number for number in clues.numbers if FIRST_YEAR <= number <= LAST_YEAR}
        return (
            pair
            for pair in combinations(days, 2)
            if {day.year for day in pair} == (years or {LEAP_YEAR})
        )

    return Form(
        "interval",
        weight,
        draw,
        write,
        guess=guess,
        years=no_years if skeleton in _UNDATED else _shown_years,
        dated=skeleton not in _UNDATED,
    )


def _write_time(moment: time, style: str, locale: Locale) -> str:
    return str(locale.time_formats[style].apply(moment, locale))


def _time_form(style: str, weight: int) -> Form:
    return Form(
        "time",
        weight,
        draw=lambda rng, _: (_draw_time(rng, seconds=style == "medium"),),
        write=lambda value, locale: _write_time(value[0], style, locale),
        guess=lambda clues: ((moment,) for moment in clues.times()),
    )


def _moment_form(style: str, weight: int) -> Form:
    """A date with a time of day."""

    def write(value: Value, locale: Locale) -> str:
        glue = str(locale.datetime_formats[style]).replace("'", "")
        day, moment = value
        return glue.replace("{0}", _write_time(moment, "short", locale)).replace(
            "{1}", _write_date(day, style, locale)
        )

    def guess(clues: Clues) -> Iterator[Value]:
        days = [(day, normalise(_write_date(day, style, clues.locale))) for day in clues.dates()]
        times = [(t, normalise(_write_time(t, "short", clues.locale))) for t in clues.times()]
        return product(clues.names(days), clues.names(times))

    return Form(
        "time",
        weight,
        draw=lambda rng, years: (_draw_date(rng, years), _draw_time(rng, seconds=False)),
        write=write,
        guess=guess,
        years=_shown_years,
        dated=True,
    )


CALENDAR_FORMS = (
    # If two styles write one text (May 4, 2021), the text has the meaning of the earlier style.
    _date_form("long", 5),
    _date_form("full", 6),
    _date_form("medium", 4),
    _date_form("short", 3),
    _date_form("yMMMEd", 4),
    _date_form("yMMMM", 3),
    _date_form("yQQQQ", 2),
    _date_form("yMd", 3),
    _date_form("MMMMd", 2),
    _interval_form("yMMMd", 9, "dMy"),
    _interval_form("yMMMEd", 7, "dMy"),
    _interval_form("yMMMM", 5, "My"),
    _interval_form("y", 2, "y"),
    _interval_form("MMMd", 3, "dM"),
    _moment_form("full", 5),
    _moment_form("long", 3),
    _time_form("short", 3),
    _time_form("medium", 3),
)
