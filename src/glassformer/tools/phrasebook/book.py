"""The built-in corpus of dates, intervals, times and amounts of money in two languages.

The texts come from the Unicode CLDR through Babel (the extra ``demo``), in any two languages of the
CLDR. One source text never has two targets. No training phrase shows a
held-out year, and every phrase of validation and test shows one. So memory alone cannot give a good
score. :func:`oracle` returns the right target of any phrase of the domain, drawn or not.

The domain is the years 1950 to 2049, and 1.00 to 9,999.99 in ten currencies. The texts follow the
CLDR except for spaces and dashes (:func:`~glassformer.tools.phrasebook.forms.normalise`).
"""

import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from glassformer.support.errors import UsageError, counted, missing_extra, nearest
from glassformer.tools.phrasebook.amounts import AMOUNT_FORMS
from glassformer.tools.phrasebook.calendar import CALENDAR_FORMS
from glassformer.tools.phrasebook.forms import (
    FIRST_YEAR,
    LAST_YEAR,
    Clues,
    Form,
    Locale,
    Value,
    normalise,
)

__all__ = [
    "KINDS",
    "TEST_YEARS",
    "VALIDATION_YEARS",
    "Phrase",
    "Phrasebook",
    "leaked",
    "normalise",
    "oracle",
    "phrasebook",
]

FORMS: tuple[Form, ...] = (*CALENDAR_FORMS, *AMOUNT_FORMS)
KINDS = tuple(dict.fromkeys(form.kind for form in FORMS))
VALIDATION_YEARS = range(1953, LAST_YEAR + 1, 14)
TEST_YEARS = range(1960, LAST_YEAR + 1, 14)
HELD_OUT = frozenset((*VALIDATION_YEARS, *TEST_YEARS))
TRAINING_YEARS = [year for year in range(FIRST_YEAR, LAST_YEAR + 1) if year not in HELD_OUT]
# Bounds of a phrase, beyond which the oracle refuses a text at once.
MOST_CHARACTERS, MOST_RUNS = 200, 8

_LEAK = re.compile(
    r"^$|[{}¤]"  # no text; a placeholder {0}; a currency pattern
    r"|(?<![A-Za-z])([GyMLEcdHhQ])\1+(?![A-Za-z])"  # a field of a date pattern: EEEE, yyyy
    r"|(?<![A-Za-z])M(0[1-9]|1[0-2])(?![0-9])"  # the root locale's name of a month
)


@dataclass(frozen=True)
class Phrase:
    """One phrase in both languages; ``year`` is the held-out year in the phrase, or None."""

    kind: str
    source: str
    target: str
    year: int | None = None


class Phrasebook(NamedTuple):
    """The three splits; a held-out year of validation or test occurs in no other split."""

    train: list[Phrase]
    validation: list[Phrase]
    test: list[Phrase]


def leaked(text: str) -> bool:
    """Whether the text shows a CLDR key or pattern, which means that the CLDR lacks data.

    >>> leaked("1,00 ¤¤"), leaked("2021 {1}"), leaked("EEEE, 4. März"), leaked("4. März")
    (True, True, True, False)
    """
    return _LEAK.search(text) is not None


def phrasebook(
    *, source: str = "en", target: str = "de", seed: int = 0, size: int = 12_000
) -> Phrasebook:
    """Draw ``size`` phrases for training, a 24th of ``size`` for validation, a 12th for test.

    All phrases differ. Every phrase of validation and test shows a year of ``VALIDATION_YEARS`` or
    ``TEST_YEARS``. ``source`` and ``target`` are CLDR names (``de``, ``pt_BR``). Equal arguments
    and one version of Babel give one corpus on any machine.

    Raises UsageError for an unknown language, or for a size that is too large or not positive.
    Raises InputError without Babel.

    >>> book = phrasebook(size=240)
    >>> [len(split) for split in book]
    [240, 10, 20]
    >>> any("1960" in phrase.source for phrase in book.train)
    False
    """
    if size < 1:
        raise UsageError(f"a phrasebook of size {size}: expected 1 or more phrases")
    locales = _locale(source), _locale(target)
    return Phrasebook(
        _sample(TRAINING_YEARS, size, locales, Random(f"{seed} train")),
        _sample(VALIDATION_YEARS, max(1, size // 24), locales, Random(f"{seed} validation")),
        _sample(TEST_YEARS, max(1, size // 12), locales, Random(f"{seed} test")),
    )


def oracle(text: str, *, source: str = "en", target: str = "de") -> str | None:
    """The right target of any phrase of the domain, drawn or not, or None for another text.

    >>> oracle("Thursday, March 4, 2021"), oracle("March 4 - 7")
    ('Donnerstag, 4. März 2021', None)
    >>> oracle("Mar 4 - 7, 2021"), oracle("$1,234.50")
    ('4.–7. März 2021', '1.234,50 $')
    """
    locales = _locale(source), _locale(target)
    clues = Clues(normalise(text), locales[0])
    if len(clues.text) > MOST_CHARACTERS or len(clues.runs) > MOST_RUNS:
        return None
    for form in FORMS:
        for value in form.guess(clues):
            if _write(form, value, locales[0]) == clues.text:
                written = _write(form, value, locales[1])
                if written is not None:
                    return written
    return None


def _sample(
    years: Sequence[int], size: int, locales: tuple[Locale, Locale], rng: Random
) -> list[Phrase]:
    """Different phrases with a main year in ``years``, and perhaps a second, training year."""
    held_out = bool(HELD_OUT.intersection(years))
    forms = [form for form in FORMS if form.dated or not held_out]
    weights = [form.weight for form in forms]
    forbidden = HELD_OUT.difference(years)
    phrases: dict[str, Phrase] = {}
    for _ in range(50 * size + 1000):
        form = rng.choices(forms, weights)[0]
        value = form.draw(rng, years)
        shown = form.years(value)
        outside = form.dated and not FIRST_YEAR <= min(shown) <= max(shown) <= LAST_YEAR
        if outside or forbidden.intersection(shown):
            continue
        texts = _texts(form, value, locales)
        if texts is not None and texts[0] not in phrases:
            year = next((year for year in shown if year in HELD_OUT), None)
            phrases[texts[0]] = Phrase(form.kind, *texts, year)
            if len(phrases) == size:
                return list(phrases.values())
    raise UsageError(
        f"a phrasebook of {size} phrases from {locales[0]} to {locales[1]}: found only"
        f" {counted(len(phrases), 'different phrase')}; ask for fewer, or take another language"
    )


def _texts(form: Form, value: Value, locales: tuple[Locale, Locale]) -> tuple[str, str] | None:
    """The value in both languages.

    In English, *May 4, 2021* is both the long and the medium style, but German has two texts. As
    in the oracle, the function uses the earliest form that writes an equal source.
    """
    source = _write(form, value, locales[0])
    for reading in FORMS:
        fits = reading.kind == form.kind and reading.dated == form.dated
        if fits and source is not None and _write(reading, value, locales[0]) == source:
            target = _write(reading, value, locales[1])
            return None if target is None else (source, target)
    return None


def _write(form: Form, value: Value, locale: Locale) -> str | None:
    """The text of a value, or None if the locale lacks data or shows a key."""
    try:
        text = normalise(form.write(value, locale))
    except (LookupError, ValueError):  # forms and Babel raise them for missing data
        return None
    return None if leaked(text) else text


@lru_cache(maxsize=64)
def _locale(name: str) -> Locale:
    try:
        from babel import Locale as BabelLocale
        from babel import UnknownLocaleError
        from babel.localedata import LocaleDataDict, load, locale_identifiers
    except ImportError as error:
        raise missing_extra("babel", "demo") from error
    known = locale_identifiers()
    try:
        locale = BabelLocale.parse(name.strip().replace("-", "_"))
    except (ValueError, UnknownLocaleError):
        locale = None
    if locale is None or str(locale) not in known:
        raise UsageError(
            f"language {name!r}: the CLDR has no such locale{nearest(name, sorted(known))}; "
            "expected a name such as de, fr or pt_BR"
        )
    # Babel's locales share inherited data, and Babel writes into the data: after Hebrew, French
    # months would be Hebrew (Babel's issue 1234). So each locale gets a copy.
    inherited: Any = load(str(locale))
    vars(locale)["_Locale__data"] = LocaleDataDict(deepcopy(inherited))
    return locale
