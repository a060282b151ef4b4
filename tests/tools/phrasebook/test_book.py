"""The built-in corpus: a function of its seed, years held out whole, no leaks, a right oracle."""

import datetime
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.support.errors import InputError, UsageError
from glassformer.tools.phrasebook import book as module
from glassformer.tools.phrasebook.book import (
    KINDS,
    TEST_YEARS,
    VALIDATION_YEARS,
    Phrase,
    Phrasebook,
    leaked,
    oracle,
    phrasebook,
)
from glassformer.tools.phrasebook.forms import normalise
from tests.tables import every

HELD_OUT = {*VALIDATION_YEARS, *TEST_YEARS}
MONTHS = (
    *("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli"),
    *("August", "September", "Oktober", "November", "Dezember"),
)


@pytest.fixture(scope="module")
def book() -> Phrasebook:
    return phrasebook(size=3000, seed=1)


def years_in(text: str) -> set[int]:
    """Runs of four digits, thousands separators of either language left out before."""
    return {int(run) for run in re.findall(r"\d{4}", re.sub(r"(?<=\d)[,.](?=\d{3})", "", text))}


def test_sizes_and_no_source_twice(book: Phrasebook) -> None:
    assert [len(split) for split in book] == [3000, 125, 250]
    sources = [phrase.source for split in book for phrase in split]
    assert len(set(sources)) == len(sources)


def test_held_out_years_never_occur_in_training(book: Phrasebook) -> None:
    assert len(HELD_OUT) == 14
    for phrase in book.train:
        assert phrase.year is None
        assert not (years_in(phrase.source) | years_in(phrase.target)) & HELD_OUT, phrase


@pytest.mark.parametrize(
    ("split", "own", "other"),
    [(1, VALIDATION_YEARS, TEST_YEARS), (2, TEST_YEARS, VALIDATION_YEARS)],
)
def test_every_held_out_phrase_shows_a_year_of_its_own_split(
    book: Phrasebook, split: int, own: range, other: range
) -> None:
    for phrase in book[split]:
        assert phrase.year in own
        two_digits = f"{phrase.year % 100:02d}"
        assert two_digits in phrase.source
        assert two_digits in phrase.target
        assert not years_in(phrase.source) & set(other)


def test_kinds_are_balanced_and_phrases_short(book: Phrasebook) -> None:
    counts = Counter(phrase.kind for phrase in book.train)
    assert set(counts) == set(KINDS)
    assert counts["date"] + counts["interval"] >= 1500
    assert min(counts.values()) >= 60
    assert {"date", "interval", "time"} == {phrase.kind for phrase in book.test}
    assert max(len(phrase.source.split()) for phrase in book.train) <= 14
    assert max(len(phrase.target.split()) for phrase in book.train) <= 14


def test_training_has_seen_every_word_of_the_test(book: Phrasebook) -> None:
    def words(phrases: list[Phrase]) -> Counter[str]:
        texts = (text for phrase in phrases for text in (phrase.source, phrase.target))
        return Counter(word for text in texts for word in re.findall(r"[^\W\d]+", text))

    known = words(book.train)
    assert len(known) < 500
    assert all(known[word] >= 5 for word in words(book.test))


def test_only_what_a_person_can_type(book: Phrasebook) -> None:
    for phrase in book.train:
        for text in (phrase.source, phrase.target):
            assert normalise(text) == text
            assert not set(text) & set("\u00a0\u2009\u202f")


def test_same_seed_same_book_in_another_process() -> None:
    program = (
        "from glassformer.tools.phrasebook.book import phrasebook;"
        "print(ascii(phrasebook(size=60, seed=5)))"
    )
    other = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "123", "PYTHONPATH": ":".join(sys.path)},
    )
    assert other.stdout.strip() == ascii(phrasebook(size=60, seed=5))
    assert phrasebook(size=60, seed=6) != phrasebook(size=60, seed=5)


@every(
    ("source", "target"),
    [
        ("Thursday, March 4, 2021", "Donnerstag, 4. März 2021"),
        ("May 4, 2021", "4. Mai 2021"),
        ("Mar 4, 2021", "04.03.2021"),
        ("3/4/21", "04.03.21"),
        ("2/29/00", "29.02.00"),
        ("Mar 4 – 7, 2021", "4.–7. März 2021"),
        ("December 1999 – January 2001", "Dezember 1999 – Januar 2001"),
        ("3:05 PM", "15:05"),
        ("12:00 AM", "00:00"),
        ("12:30:09 PM", "12:30:09"),
        ("$1,953.00", "1.953,00 $"),
        ("1.00 US dollars", "1,00 US-Dollar"),
        ("  Mar 4 -   7,\u00a02021 ", "4.–7. März 2021"),
    ],
)
def test_the_oracle_knows_german(source: str, target: str) -> None:
    assert oracle(source) == target


@every(
    "text",
    [
        *("", " ", "hello", "March", "Friday, March 4, 2021", "February 29, 2021"),
        *("March 4, 1949", "March 4, 2050", "13/1/21", "25:00", "13:05 PM", "Mar 7 – 4, 2021"),
        *("Mar 4 – 4, 2021", "$0.50", "$10,000.00", "1.00 US dollar", "March 4, 2021!"),
        *("x" * 10_000, "1 2 3 " * 1000, "9" * 5000, "²", "March ٣, 2021"),
    ],
)
def test_the_oracle_answers_nothing_to_what_is_no_phrase(text: str) -> None:
    assert oracle(text) is None


def test_the_oracle_agrees_with_the_corpus(book: Phrasebook) -> None:
    seen: Counter[str] = Counter()
    for phrase in [*book.test[:80], *book.train]:
        seen[phrase.kind] += 1
        if seen[phrase.kind] <= 25:
            assert oracle(phrase.source) == phrase.target
    assert min(seen.values()) >= 60


@given(st.dates(date(1950, 1, 1), date(2049, 12, 31)))
def test_the_oracle_reads_any_date(day: date) -> None:
    english = f"{day:%B} {day.day}, {day.year}"
    german = f"{day.day}. {MONTHS[day.month - 1]} {day.year}"
    assert oracle(english) == german
    assert oracle(german, source="de", target="en") == english
    assert oracle(f"{day:%A}, {english}, 3:05 PM", target="en") == f"{day:%A}, {english}, 3:05 PM"
    assert oracle(f"{day.month}/{day.day}/{day:%y}") == f"{day:%d.%m.%y}"


@pytest.mark.parametrize("text", ["2001 2002 1 2 3 4 5 6", "Jan 1, 2021 – Feb 2, 2022 3 4 May"])
def test_the_oracle_is_quick_even_for_nonsense(text: str) -> None:
    start = time.process_time()
    assert oracle(text) is None
    assert time.process_time() - start < 2.0  # under 1 s on an idle core


@pytest.mark.parametrize(
    ("source", "target"), [("en", "fr"), ("de", "es"), ("en", "ja"), ("ja", "en"), ("en-GB", "pl")]
)
def test_other_languages(source: str, target: str) -> None:
    book = phrasebook(source=source, target=target, size=150)
    assert {phrase.kind for phrase in book.train} == set(KINDS)
    for phrase in [*book.train[:60], *book.test]:
        assert not leaked(phrase.source)
        assert not leaked(phrase.target)
        assert oracle(phrase.source, source=source, target=target) == phrase.target


@every(
    "text",
    [
        *("{0} 2021", "3 {1}", "1,00 ¤¤", "EEEE, 4. März", "4 MMMM 2021", ""),
        *("4 M03 2021", "2021年 MM 月"),
    ],
)
def test_a_leak_is_seen(text: str) -> None:
    assert leaked(text)


@pytest.mark.parametrize(
    "text", ["2021-03-04", "4.-7. Mai", "Schifffahrt", "4 Mai 2021", "CA$3.00"]
)
def test_an_ordinary_text_is_no_leak(text: str) -> None:
    assert not leaked(text)


def test_a_faked_leak_never_reaches_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    import babel.numbers

    honest = babel.numbers.format_currency

    def leaking(value: object, code: str, **options: object) -> str:
        return f"{value} ¤¤" if code == "USD" else honest(value, code, **options)

    monkeypatch.setattr(babel.numbers, "format_currency", leaking)
    amounts = [phrase for phrase in phrasebook(size=600).train if phrase.kind == "amount"]
    assert len(amounts) > 20
    assert not any("¤" in phrase.source or "$1" in phrase.target for phrase in amounts)
    assert oracle("3.00 ¤¤") is None


def test_a_real_leak_never_reaches_the_corpus() -> None:
    assert oracle("March 4, 2021", target="wa") is None  # Babel writes "2021 M03 4" in Walloon
    assert oracle("3/4/2021", target="wa") is not None
    assert not any("M0" in phrase.target for phrase in phrasebook(target="wa", size=300).train)


def test_one_language_leaves_no_trace_in_another() -> None:
    # Babel itself would write the months of whichever language it was asked for first.
    assert "מרץ" in str(oracle("March 4, 2021", target="he"))
    assert oracle("March 4, 2021", target="fr") == "4 mars 2021"
    assert oracle("January 4, 2021", target="de") == "4. Januar 2021"
    assert oracle("January 4, 2021", target="de_AT") == "4. Jänner 2021"
    assert oracle("Mar 4, 2021", target="nb") == "4. mars 2021"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dee", r"language 'dee': the CLDR has no such locale \(did you mean 'ee'\?\)"),
        ("de_Lat", "did you mean 'de_"),
        ("", "language '': the CLDR has no such locale; expected a name such as de, fr or pt_BR"),
        ("root", "language 'root'"),
        ("de/../en", "language 'de/../en'"),
    ],
)
def test_unknown_language(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        phrasebook(target=name)
    with pytest.raises(UsageError, match=message):
        oracle("March 4, 2021", source=name)


def test_impossible_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="a phrasebook of size 0: expected 1 or more"):
        phrasebook(size=0)
    time_of_day = next(form for form in module.FORMS if form.kind == "time" and not form.dated)
    noon = replace(time_of_day, draw=lambda *_: (datetime.time(12),))
    monkeypatch.setattr(module, "FORMS", (noon,))
    with pytest.raises(
        UsageError, match="of 2 phrases from en to de: found only 1 different phrase"
    ):
        phrasebook(size=2)


def test_without_babel(monkeypatch: pytest.MonkeyPatch) -> None:
    module._locale.cache_clear()
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(InputError, match=r"this needs babel: pip install 'glassformer\[demo\]'"):
        phrasebook(size=1)


def test_babel_is_imported_only_when_used() -> None:
    program = (
        "import sys, glassformer.tools.phrasebook.book; print({'babel', 'torch'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "set()"
