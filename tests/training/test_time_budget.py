"""A run of so many minutes, by a clock that the test sets: it ends on time, on any machine."""

import json
from itertools import pairwise

import pytest

from glassformer.errors import InputError
from glassformer.training.schedule import learning_rate
from glassformer.training.setup.options import TrainConfig
from glassformer.training.time_budget import PACE_FILE, TimedPace

MINUTES = 20.0
SECONDS = 60 * MINUTES
MANY = 1_000_000


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Nothing loses power here."""
    monkeypatch.setattr("os.fsync", lambda _: None)


class Machine:
    """A training whose updates and validations take what the test says."""

    def __init__(self, run, *, most=MANY, scoring=6.0, update=0.5, validation=3.0, **options):
        self.config = TrainConfig(
            pairs=("a",),
            run=run,
            warmup=800,
            rate_factor=1.2,
            **{"minutes": MINUTES, **options},
        )
        self.most, self.scoring = most, scoring
        self.update, self.validation = update, validation  # seconds, or a function of the time
        self.time = 0.0
        self.rates, self.validated = {}, []

    def cost(self, what):
        return what(self.time) if callable(what) else what

    def run(self, *, reading=10.0, begun=0, until=float("inf")):
        """Train from ``begun`` on, until the end or a kill; the seconds since this call."""
        began = self.time
        self.time += reading
        self.pace = TimedPace(
            self.config,
            most=self.most,
            d_model=128,
            begun=begun,
            scoring=self.scoring,
            clock=lambda: self.time - began,
        )
        update = begun
        while update < self.pace.updates:
            update += 1
            self.rates[update] = self.pace.rate(update)
            self.time += self.cost(self.update)
            if self.time > until:
                return self.time - began
            self.pace.passed(update)
            if update == self.pace.updates or self.pace.validation_due(update):
                self.validated.append(update)
                self.time += self.cost(self.validation)
        self.updates = update
        self.time += self.scoring * self.cost(self.validation)
        return self.time - began

    @property
    def journal(self):
        return (self.config.run / PACE_FILE).read_bytes()


def halfway(before, after):
    return lambda time: before if time < SECONDS / 2 else after


@pytest.mark.parametrize(
    "costs",
    [
        {"update": 0.05, "validation": 0.5, "minutes": 4.0},
        {},
        {"validation": 0.0, "scoring": 0.0},
        {"update": 6.0, "validation": 10.0},
        {"update": halfway(0.5, 2.0)},
        {"update": halfway(2.0, 0.5)},
        {"update": halfway(0.5, 5.0), "validation": halfway(2.0, 20.0)},
        {"update": lambda time: 0.5 if int(time / 30) % 3 else 0.8},
        {"update": lambda time: 5.0 if time < 40 else 0.5},  # compiling, or another's burst
        {"validation": lambda time: max(3.0, 25.0 - time / 20)},  # rambling at first
        {"minutes": 0.2, "update": 0.01, "validation": 0.1, "reading": 1.0},
        {"minutes": 600.0, "update": 20.0, "validation": 60.0, "reading": 900.0},
    ],
)
def test_it_ends_on_time_and_the_rate_has_come_to_its_end(tmp_path, costs):
    reading = costs.pop("reading", 10.0)
    machine = Machine(tmp_path, **costs)
    taken = machine.run(reading=reading)

    assert taken == pytest.approx(60 * machine.config.minutes, rel=0.03)
    highest, last = max(machine.rates.values()), machine.rates[machine.updates]
    assert last < 0.02 * highest + highest / (0.6 * machine.updates)


def test_at_a_steady_speed_it_is_the_schedule_of_as_many_updates(tmp_path):
    machine = Machine(tmp_path, validation=0.0)
    machine.run()

    assert machine.updates == pytest.approx((SECONDS - 10) / 0.5, rel=0.003)
    warmup = round(0.2 * machine.updates)
    factor = 1.2 * (warmup / 800) ** 0.5
    same = {"d_model": 128, "warmup": warmup, "factor": factor, "anneal": machine.config.anneal}
    for update in (50, 300, 700, 1_500, 2_000, 2_350):
        expected = learning_rate(update, updates=machine.updates, **same)
        assert machine.rates[update] == pytest.approx(expected, rel=0.03)


def test_the_rate_never_jumps_though_the_machine_does(tmp_path):
    machine = Machine(tmp_path, update=halfway(0.5, 2.0))
    machine.run()

    rates = [machine.rates[update] for update in range(1, machine.updates + 1)]
    steps = [abs(after - before) / max(rates) for before, after in pairwise(rates)]
    assert max(steps) < 0.03  # in the warm-up, when it is first measured
    assert max(steps[50:]) < 0.01
    half = rates[: len(rates) // 2]
    assert max(half) == max(rates)


def test_a_short_run_warms_up_in_time_and_no_hotter(tmp_path):
    machine = Machine(tmp_path, minutes=2.0, update=0.1, validation=0.2)
    machine.run()

    top = max(machine.rates, key=machine.rates.__getitem__)
    assert top == pytest.approx(0.2 * machine.updates, rel=0.1)
    assert machine.updates < 1200
    assert machine.rates[top] == pytest.approx(1.2 / (128 * 800) ** 0.5, rel=0.01)


def test_what_more_would_not_help_is_not_done(tmp_path):
    machine = Machine(tmp_path, most=600)
    taken = machine.run()

    assert machine.updates == 600
    assert machine.pace.ended_early
    assert taken < 0.4 * SECONDS
    assert machine.rates[600] < 0.004 * max(machine.rates.values())


def test_validated_as_often_as_said(tmp_path):
    machine = Machine(tmp_path, validations=25, validation=1.0)
    machine.run()

    assert len(machine.validated) == pytest.approx(24, abs=1)  # the first comes later
    assert machine.validated[0] >= 0.09 * machine.updates
    gaps = [after - before for before, after in pairwise(machine.validated)]
    assert max(gaps[:-1]) <= 1.1 * min(gaps[:-1])
    assert gaps[-1] < 1.6 * gaps[0]
    assert machine.validated[-1] == machine.updates


def test_validations_that_take_long_come_seldom(tmp_path):
    machine = Machine(tmp_path, validations=25, validation=40.0)
    machine.run()

    assert 2 <= len(machine.validated) <= 4
    assert machine.validated == sorted(set(machine.validated))


def test_reading_that_takes_all_the_time_leaves_two_updates(tmp_path):
    machine = Machine(tmp_path, minutes=1.0)
    machine.run(reading=100.0)

    assert machine.updates == 2


def test_a_killed_run_does_what_it_had_decided_and_ends_on_time(tmp_path):
    machine = Machine(tmp_path)
    machine.run(until=700.0)
    before, decided = dict(machine.rates), machine.journal
    last = max(before)

    machine.time += 86_400.0  # a night in which it was dead
    machine.update = 0.8  # on the next day others work here too
    taken = machine.run(begun=last - 100, reading=5.0)

    assert machine.journal.startswith(decided)
    replayed = [update for update in before if update <= last - 52]
    assert all(machine.rates[update] == before[update] for update in replayed)
    # The seconds since its last decision are not known any more.
    assert 700.0 + taken == pytest.approx(SECONDS, rel=0.04)
    assert machine.rates[machine.updates] < 0.02 * max(machine.rates.values())


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.99])
def test_a_finished_run_is_repeated_from_any_checkpoint_whatever_the_clock_says(tmp_path, share):
    first = Machine(tmp_path, update=halfway(0.5, 0.8))
    first.run()

    again = Machine(tmp_path, update=7.0, validation=100.0)
    begun = int(share * first.updates)
    again.run(begun=begun, reading=3_000.0)

    assert again.updates == first.updates
    assert again.rates == {u: rate for u, rate in first.rates.items() if u > begun}
    assert again.validated == [update for update in first.validated if update > begun]
    assert again.journal == first.journal
    decided = [json.loads(line)["update"] for line in first.journal.splitlines()]
    assert decided == sorted(set(decided))
    assert decided[-1] == first.updates


def test_a_file_that_no_run_wrote_is_refused(tmp_path):
    (tmp_path / PACE_FILE).write_text('{"update": 3}\n')

    with pytest.raises(InputError, match=r"pace.jsonl: not the plans of a run .*: remove it"):
        Machine(tmp_path).run()
