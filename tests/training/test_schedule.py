"""Equation 3 at points worked out by hand, and its way down to zero."""

from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.training.checkpoint import RunState
from glassformer.training.pace import Schedule, SteadyPace
from glassformer.training.schedule import noam_schedule
from glassformer.training.setup.options import Decay, LengthOptions
from glassformer.training.time_budget import TimedPace
from tests.tables import every


@every(
    ("update", "d_model", "warmup", "expected"),
    [
        # d_model 64: 1/8. At the end of the warm-up of 100 both branches meet: 1/8 * 1/10.
        (100, 64, 100, 0.0125),
        # A quarter of the way up, a quarter of the rate.
        (25, 64, 100, 0.003125),
        # At four times the warm-up, half of the peak.
        (400, 64, 100, 0.00625),
        (1, 64, 100, 0.000125),
        # The paper's base model: 512^-0.5 * 4000^-0.5.
        (4000, 512, 4000, 6.98771242969e-4),
        (1, 1, 1, 1.0),
    ],
)
def test_equation_3_by_hand(update, d_model, warmup, expected):
    assert noam_schedule(update, d_model=d_model, warmup=warmup) == pytest.approx(expected)


def test_the_factor_multiplies():
    assert noam_schedule(25, d_model=64, warmup=100, factor=2.0) == pytest.approx(0.00625)


@every(
    ("update", "sizes", "message"),
    [
        (0, {"d_model": 64}, "updates count from 1, got 0"),
        (1, {"d_model": 64, "warmup": 0}, "warmup, got 0"),
        (1, {"d_model": -64}, "d_model, got -64"),
    ],
)
def test_updates_and_sizes_begin_at_one(update, sizes, message):
    with pytest.raises(ValueError, match=f"^noam_schedule.*{message}$"):
        noam_schedule(update, **sizes)


def rates(anneal, updates=1000):
    schedule = Schedule(updates, d_model=64, warmup=100, factor=1.5, anneal=anneal)
    return [schedule.rate(update) for update in range(1, updates + 1)]


def test_the_annealed_rate_is_the_papers_and_then_falls_to_nearly_zero():
    papers = [noam_schedule(u, d_model=64, warmup=100, factor=1.5) for u in range(1, 1001)]
    annealed = rates(0.4)

    assert annealed[:600] == papers[:600]
    shares = [a / p for a, p in zip(annealed[600:], papers[600:], strict=True)]
    falls = [earlier - later for earlier, later in pairwise(shares)]
    assert falls == pytest.approx([1 / 400] * 399)  # a straight line
    assert 0 < shares[-1] == pytest.approx(1 / 400)


def test_no_annealing_is_the_papers():
    assert rates(0.0) == [
        noam_schedule(u, d_model=64, warmup=100, factor=1.5) for u in range(1, 1001)
    ]


def test_a_run_of_one_update_moves():
    assert Schedule(updates=1, d_model=64, warmup=1, anneal=0.5).rate(1) > 0


def test_without_decay_the_rate_keeps_its_height():
    rate = Schedule(1000, d_model=64, warmup=100, anneal=0.2, decay="constant").rate
    assert rate(50) == pytest.approx(0.00625)
    assert rate(100) == rate(500) == rate(800) == pytest.approx(0.0125)
    assert rate(901) == pytest.approx(0.00625)


def test_each_decay_has_rates_of_its_own():
    """A name that `rate` does not know would run as another."""
    schedules = [Schedule(100, d_model=64, warmup=10, decay=decay) for decay in get_args(Decay)]

    assert len({schedule.rate(90) for schedule in schedules}) == len(get_args(Decay))


@given(
    anneal=st.floats(0, 1),
    decay=st.sampled_from(get_args(Decay)),
    updates=st.integers(1, 300),
    minutes=st.booleans(),
)
def test_a_schedule_of_one_s_own_is_the_rate(anneal, decay, updates, minutes):
    """Whatever the options say, in a run of updates or of minutes."""
    own = {"anneal": anneal, "decay": decay, "form": lambda update, **_: 1 / update}
    schedule = Schedule(updates, 64, warmup=10, **own)
    pace = SteadyPace(schedule, 1)
    if minutes:
        length = LengthOptions(minutes=3, validations=1)
        pace = TimedPace(length, RunState(), schedule, scoring=1, clock=lambda: 0.0)
    assert [pace.rate(update) for update in (1, 2, updates)] == [1, 1 / 2, 1 / updates]


@pytest.mark.parametrize("rate", [-1e-3, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate):
    schedule = Schedule(9, d_model=64, form=lambda *_, **__: rate)
    with pytest.raises(ValueError, match=f"^rate {rate} of update 7: expected a number from 0$"):
        schedule.rate(7)
