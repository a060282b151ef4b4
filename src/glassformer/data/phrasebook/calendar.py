"""The phrasebook's dates, intervals, times and relative times."""

import math
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import combinations, product
from random import Random
from typing import Any

from glassformer.data.phrasebook.forms import (
    FIRST_YEAR,
    LAST_YEAR,
    Clues,
    Form,
    Locale,
    Value,
    Years,
    marked_pattern,
    month_length,
    no_years,
    normalise,
)

__all__ = ["CALENDAR_FORMS", "SPANS", "draw_count", "draw_date", "shown_years", "write_date"]

SPANS = {  # in seconds, as Babel counts them
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 7 * 86400,
    "month": 30 * 86400,
    "year": 365 * 86400,
}
LEAP_YEAR = 2000  # where a form shows no year: 29 February is a day too


def shown_years(value: Value) -> tuple[int, ...]:
    return tuple(part.year for part in value if isinstance(part, date))


def draw_date(rng: Random, years: Years) -> date:
    year, month = rng.choice(years), rng.randint(1, 12)
    return date(year, month, rng.randint(1, month_length(year, month)))


def _draw_time(rng: Random, *, seconds: bool) -> time:
    return time(rng.randrange(24), rng.randrange(60), rng.randrange(60) if seconds else 0)


def draw_count(rng: Random, digits: int) -> Decimal:
    """1 often, for its singular; otherwise every length up to ``digits`` alike."""
    return Decimal(1 if rng.random() < 0.15 else rng.randrange(1, 10 ** rng.randint(1, digits)))


@cache
def _pattern(locale: Locale, name: str, item: int) -> Any:
    """The pattern of a style (``long``) or of a skeleton (``yMMMM``)."""
    patterns = locale.datetime_skeletons if name[0] in "yM" else locale.date_formats
    return marked_pattern(patterns[name].pattern, item)


def write_date(day: date, name: str, locale: Locale, *, item: int = 0) -> str:
    return str(_pattern(locale, name, item).apply(day, locale))


def _date_form(name: str, weight: int) -> Form:
    dated = name != "MMMMd"
    absent: dict[str, Any] = {
        "yMMMM": {"days": [1]},
        "yQQQQ": {"months": [1, 4, 7, 10], "days": [1]},
        "MMMMd": {"years": [LEAP_YEAR]},
        "short": {"short_years": True},
    }
    return Form(
        "date",
        name,
        weight,
        draw=lambda rng, years: (draw_date(rng, years),),
        write=lambda value, locale: write_date(value[0], name, locale),
        guess=lambda clues: ((day,) for day in clues.dates(**absent.get(name, {}))),
        years=shown_years if dated else no_years,
        dated=dated,
    )


def _interval_form(skeleton: str, weight: int, spans: str) -> Form:
    """``spans``: the largest field in which start and end differ, each drawn equally often."""
    dated = "y" in skeleton
    absent: dict[str, Any] = {
        "yMMMM": {"days": [1]},
        "y": {"months": [1], "days": [1]},
        "MMMd": {"years": [LEAP_YEAR]},
    }

    def draw(rng: Random, years: Years) -> Value:
        start, end = draw_date(rng, years), draw_date(rng, years)
        span = rng.choice(spans)
        year = start.year + (rng.choice((-1, 1)) * rng.randint(1, 9) if span == "y" else 0)
        month = start.month if span == "d" else end.month
        return tuple(sorted((start, date(year, month, min(end.day, month_length(year, month))))))

    def write(value: Value, locale: Locale) -> str:
        start, end = value
        if start == end:
            raise ValueError(f"no interval: both ends are {start}")
        field = "y" if start.year != end.year else "M" if start.month != end.month else "d"
        # A KeyError where the skeleton cannot show the difference: Babel would fall back.
        patterns = map(marked_pattern, locale.interval_formats[skeleton][field], (0, 1))
        return "".join(p.apply(day, locale) for p, day in zip(patterns, value, strict=True))

    def guess(clues: Clues) -> Iterator[Value]:
        days = clues.dates(**absent.get(skeleton, {}))
        years = {number for number in clues.numbers if FIRST_YEAR <= number <= LAST_YEAR}
        return (
            pair
            for pair in combinations(days, 2)
            if {day.year for day in pair} == (years or {LEAP_YEAR})
        )

    return Form(
        "interval",
        skeleton,
        weight,
        draw,
        write,
        guess=guess,
        years=shown_years if dated else no_years,
        dated=dated,
    )


def _write_time(moment: time, style: str, locale: Locale, *, item: int = 0) -> str:
    return str(marked_pattern(locale.time_formats[style].pattern, item).apply(moment, locale))


def _time_form(style: str, weight: int) -> Form:
    return Form(
        "time",
        style,
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
        return glue.replace("{0}", _write_time(moment, "short", locale, item=1)).replace(
            "{1}", write_date(day, style, locale)
        )

    def guess(clues: Clues) -> Iterator[Value]:
        days = [(day, normalise(write_date(day, style, clues.locale))) for day in clues.dates()]
        times = [(t, normalise(_write_time(t, "short", clues.locale))) for t in clues.times()]
        return product(clues.names(days), clues.names(times))

    return Form(
        "time",
        f"{style} date",
        weight,
        draw=lambda rng, years: (draw_date(rng, years), _draw_time(rng, seconds=False)),
        write=write,
        guess=guess,
        years=shown_years,
        dated=True,
    )


def _relative_form(weight: int) -> Form:
    def draw(rng: Random, _: Years) -> Value:
        return rng.choice((-1, 1)), rng.choice(list(SPANS)), draw_count(rng, 2)

    def write(value: Value, locale: Locale) -> str:
        from babel.dates import format_timedelta

        sign, span, count = value
        delta = timedelta(seconds=sign * SPANS[span] * int(count))
        # No larger unit ever takes over: a person who writes 90 minutes means 90 minutes.
        return format_timedelta(
            delta, granularity=span, threshold=math.inf, add_direction=True, locale=locale
        )

    def guess(clues: Clues) -> Iterator[Value]:
        counts = [number for number in {1, 2, *clues.numbers} if 1 <= number < 100]
        return product((-1, 1), SPANS, counts)

    return Form("relative", "timedelta", weight, draw, write, guess)


CALENDAR_FORMS = (
    # Where two styles write a date alike (May 4, 2021), the earlier one says what it means.
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
    _relative_form(6),
)
