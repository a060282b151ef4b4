"""The forecast of a run's end, by a clock that the test sets."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.training import forecast as module
from glassformer.training.forecast import Forecast
from glassformer.training.pace import Schedule, SteadyPace


class Clock:
    """The time of a run, which its updates and validations move on."""

    def __init__(self):
        self.now = 1_000.0

    def monotonic(self):
        return self.now

    time = monotonic

    def localtime(self, seconds):
        return seconds

    def strftime(self, _, seconds):
        return f"{seconds:.1f}"


def told(clock, *, updates, seconds, validation, cores=0, computed=2, begin=0, **options):
    """The lines of a run by update, and its true end; ``seconds(update)`` is an update's time.

    Until the first validation, the forecast takes it for the time of ``expected`` updates. The
    first validation takes ``slow`` times as long as the later ones, which come down to that.
    """
    validations = options.get("validations", 10)
    pace = SteadyPace(Schedule(updates, 8), validations)
    every, lines = max(1, updates // validations), {}
    expected, slow = options.get("expected", 3.0), options.get("slow", 1.0)
    forecast = Forecast(pace, begin, every=every, validation=expected, scoring=2.0)
    forecast.awake = cores
    for update in range(begin + 1, updates + 1):
        spent = seconds(update)
        clock.now += spent
        forecast.updated(spent, computed=computed * spent)
        if pace.validation_due(update) or update == updates:
            took = validation * (slow + (1 - slow) * min(1.0, 3 * update / updates))
            clock.now += took
            forecast.validated(update, took)
        lines[update] = list(forecast.lines(update))
    return lines, clock.now + 2.0 * validation


def end_of(line):
    return float(re.search(r"left, until ([0-9.]+)$", line)[1])


@given(
    st.integers(40, 2_000),
    st.floats(0.01, 20.0),
    st.floats(0.0, 0.8),
    st.integers(10, 25),
    st.sampled_from([0.2, 1.0, 6.0]),
    st.tuples(st.floats(0.5, 2.0), st.floats(1.0, 1.3)),
)
def test_after_a_tenth_the_end_is_known_to_a_quarter(
    updates, each, share, validations, change, guess
):
    """Though the machine becomes slower or quicker near the beginning, a validation is not as
    expected, and a model that has hardly learnt takes longer for one.
    """
    clock, began = Clock(), 1_000.0
    validation = share * updates * each / validations
    expected, slow = guess[0] * share * updates / validations, guess[1]

    def seconds(update):
        return each * (change if update > updates / 50 else 1.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", clock)
        lines, end = told(
            clock,
            updates=updates,
            seconds=seconds,
            **{"validation": validation, "validations": validations},
            **{"expected": expected, "slow": slow},
        )

    early = [line for update, told in lines.items() if update <= updates / 10 + 1 for line in told]
    if end - began > 60:
        assert early
    for line in early[-1:]:
        assert abs(end_of(line) - end) < 0.25 * (end - began) + module._SLACK
    assert sum(map(len, lines.values())) < 12  # a steady run is not told again and again
    if 2 * validation < 2 * module._SLACK:
        assert not lines[updates]  # the end needs no forecast


def test_a_line_says_the_time_left_and_another_corrects_it(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)

    lines, _ = told(clock, updates=100, seconds=lambda _: 1.0, validation=3.0)
    assert [line for each in lines.values() for line in each] == [
        "about 2:13 min left, until 1136.0"
    ]

    lines, _ = told(clock, updates=100, seconds=lambda n: 1 + 2 * (n > 50), validation=3.0)
    first, *corrected = (line for each in lines.values() for line in each)
    assert first.startswith("about 2:13 min left")
    assert corrected
    assert all(line.startswith("now about ") for line in corrected)

    lines, end = told(clock, updates=100, seconds=lambda _: 1.0, validation=3.0, begin=60)
    assert [line for each in lines.values() for line in each] == [
        f"about 55 s left, until {end:.1f}"
    ]


def test_quick_updates_are_told_too_and_a_changing_machine_not_always(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)

    lines, _ = told(clock, updates=5_000, seconds=lambda _: 0.01, validation=0.0)
    assert any(lines.values())
    lines, _ = told(
        clock, updates=3_000, seconds=lambda n: 3.0 if n // 60 % 2 else 1.0, validation=1.0
    )
    assert sum(map(len, lines.values())) < 35


@pytest.mark.parametrize(("computed", "count"), [(2.0, 0), (1.3, 1)])
def test_another_program_is_told_once_if_threads_wait_awake(computed, count, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)

    for cores in (0, 2):
        lines, _ = told(
            clock, updates=90, seconds=lambda _: 1.0, validation=0.0, cores=cores, computed=computed
        )
        found = [line for each in lines.values() for line in each if "threads 1" in line]
        assert len(found) == (count if cores else 0)
