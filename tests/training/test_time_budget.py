"""A run of so many minutes, by a clock that the test sets: it ends on time, on any machine."""

import json
import random
from dataclasses import asdict
from itertools import pairwise

import pytest

from glassformer.training.checkpoint import RunState
from glassformer.training.pace import Schedule
from glassformer.training.setup.options import TrainConfig
from glassformer.training.time_budget import TimedPace
from glassformer.training.time_limit import in_time
from tests.tables import every

MINUTES = 20.0
SECONDS = 60 * MINUTES
MANY = 1_000_000
PAIRS = 1_000
SEARCH, GUESSED = 2, 7 / 3  # the time of a beam search, in validations of the same pairs


def copied(state):
    """The state as a checkpoint keeps it."""
    return RunState(**json.loads(json.dumps(asdict(state))))


class Machine:
    """A training whose updates and validations take as long as the test wants.

    ``update`` and ``validation`` (of all pairs) are seconds, or functions of the time: an early
    model writes long translations. ``load`` slows both down.
    """

    def __init__(self, *, most=MANY, test=1.0, update=0.5, validation=3.0, load=1, **options):
        self.options = {"warmup": 800, "rate_factor": 1.2, "minutes": MINUTES, **options}
        self.most, self.test = most, test
        self.update, self.validation, self.load = update, validation, load
        self.time = 0.0
        self.rates, self.validated, self.portions = {}, [], []
        self.state, self.checkpoint = RunState(), RunState()

    def value(self, what):
        return what(self.time) if callable(what) else what

    def work(self, seconds):
        """So many seconds of a quiet machine."""
        while seconds > 0:  # in pieces: the load may change on the way
            piece = min(seconds, 0.05)
            self.time += piece * self.value(self.load)
            seconds -= piece

    def translate(self, deadline, *, searches=1.0, portion=1.0):
        """The portion of the pairs that is translated in this time."""
        pairs = round(PAIRS * portion)

        def chunk(items):
            # A batch of few pairs takes longer for each.
            self.work(self.value(self.validation) * searches * (len(items) + 10) / PAIRS)
            return items

        texts = in_time(chunk, range(pairs), deadline)
        return len(texts) / pairs

    def run(self, *, reading=10.0, until=float("inf"), minutes=None):
        """Train until the end or a kill; the seconds since this call."""
        self.options["minutes"] = minutes or self.options["minutes"]
        config = TrainConfig(pairs=("a",), run="run", **self.options)
        began = self.time
        self.state = copied(self.checkpoint)
        self.work(reading)
        self.pace = TimedPace(
            config,
            self.state,
            Schedule(self.most, 128, config.warmup, config.rate_factor, config.anneal),
            scoring=1 + GUESSED * (2 + self.test),
            clock=lambda: self.time - began,
        )
        saved = self.time
        while (update := self.state.update) < self.pace.updates:
            update += 1
            self.rates[update] = self.pace.rate(update)
            self.last_share = self.pace.share(update)
            begin = self.time
            self.work(self.value(self.update))
            self.state.seconds += self.time - begin
            self.state.update = update
            self.pace.passed(update)
            if update == self.pace.updates or self.pace.validation_due(update):
                self.validated.append(update)
                self.portions.append(self.translate(self.pace.validation_deadline()))
                self.pace.validated(self.portions[-1])
            if update == self.pace.updates or self.time - saved > 0.03 * 60 * config.minutes:
                self.checkpoint = copied(self.state)
                saved = self.time
            if self.time > until:
                return self.time - began
        self.updates = self.state.update
        self.portions.append(self.translate(self.pace.validation_deadline()))  # of the mean
        for part, pairs in ((1 / (2 + self.test), 1.0), (1 / (1 + self.test), 1.0), (1, self.test)):
            deadline = self.pace.deadline().share(part)
            if pairs:
                self.portions.append(self.translate(deadline, searches=SEARCH, portion=pairs))
        return self.time - began

    @property
    def last_rate(self):
        """The rate at the end, as a share of the highest one."""
        return self.rates[self.updates] / max(self.rates.values())


def halfway(before, after, seconds=SECONDS, share=0.5):
    return lambda time: before if time < share * seconds else after


def bursts(seconds, seed):
    """A load that changes about 25 times in a run."""
    draw = random.Random(seed)
    steps = [draw.choice([1, 1, 2, 3, 5, 9, 13]) for _ in range(100)]
    return lambda time: steps[int(time / seconds * 25) % 100]


LOADS = {
    "quiet": lambda _: 1,
    "13": lambda _: 13,
    "slows down": lambda seconds: halfway(1, 13, seconds),
    "quickens": lambda seconds: halfway(13, 1, seconds),
    "slows down at the end": lambda seconds: halfway(1, 13, seconds, 0.95),
    "bursts": lambda seconds: bursts(seconds, 1),
}


@every(
    ("load", "minutes", "test"),
    [
        ("quiet", 4.0, 1.0),
        ("13", 1.0, 1.0),
        ("slows down", 20.0, 0.0),
        ("quickens", 1.0, 0.0),
        ("slows down at the end", 4.0, 1.0),
        ("bursts", 4.0, 0.0),
    ],
)
def test_no_load_makes_it_late_or_keeps_the_rate_from_its_end(load, minutes, test):
    seconds = 60 * minutes

    def shorter(time):  # an early model writes long translations
        return max(3.0, 25.0 - 66.0 * time / seconds)

    machine = Machine(
        minutes=minutes, update=0.3, validation=shorter, load=LOADS[load](seconds), test=test
    )
    taken = machine.run(reading=2.0)

    assert 0.8 * seconds < taken < 1.03 * seconds
    assert 0.95 <= machine.last_share <= 1.0
    assert machine.last_rate < 0.1 or machine.updates < 20
    assert machine.portions[-1] > 0
    if load == "quiet" and minutes > 1:
        assert taken > 0.98 * seconds
        assert machine.portions[-3:] == [1.0] * 3


@pytest.mark.parametrize(
    "costs",
    [
        {},
        {"update": 6.0, "validation": 10.0},
        {"update": lambda time: 5.0 if time < 40 else 0.5},  # compiling, or another's burst
        {"minutes": 0.2, "update": 0.01, "validation": 0.1, "reading": 1.0},
    ],
)
def test_it_ends_on_time_and_the_rate_has_come_to_its_end(costs):
    reading = costs.pop("reading", 10.0)
    machine = Machine(**costs)
    taken = machine.run(reading=reading)

    assert taken == pytest.approx(60 * machine.options["minutes"], rel=0.03)
    assert machine.last_rate < 0.02 + 1 / (0.6 * machine.updates)


def test_at_a_steady_speed_it_is_the_schedule_of_as_many_updates():
    machine = Machine(validation=0.001)
    machine.run()

    assert machine.updates == pytest.approx((SECONDS - 10) / 0.5, rel=0.005)
    warmup = round(0.2 * machine.updates)
    factor = 1.2 * (warmup / 800) ** 0.5
    schedule = Schedule(machine.updates, 128, warmup=warmup, factor=factor, anneal=0.3)
    for update in (50, 300, 700, 1_500, 2_000, 2_350):
        assert machine.rates[update] == pytest.approx(schedule.rate(update), rel=0.07)


def test_the_rate_never_jumps_though_the_machine_does():
    machine = Machine(update=halfway(0.5, 2.0))
    machine.run()

    rates = [machine.rates[update] for update in range(1, machine.updates + 1)]
    steps = [abs(after - before) / max(rates) for before, after in pairwise(rates)]
    assert max(steps) < 0.01
    half = rates[: len(rates) // 2]
    assert max(half) == max(rates)


def test_a_short_run_warms_up_in_time_and_no_hotter():
    machine = Machine(minutes=2.0, update=0.1, validation=0.2)
    machine.run()

    top = max(machine.rates, key=machine.rates.__getitem__)
    assert top == pytest.approx(0.2 * machine.updates, rel=0.1)
    assert machine.updates < 1200
    assert machine.rates[top] == pytest.approx(1.2 / (128 * 800) ** 0.5, rel=0.01)


def test_what_more_would_not_help_is_not_done():
    machine = Machine(most=600)
    taken = machine.run()

    assert machine.updates == 600
    assert taken < 0.4 * SECONDS
    assert machine.last_rate < 0.01


def test_validated_as_often_as_the_option_says():
    machine = Machine(validations=25, validation=1.0)
    machine.run()

    assert len(machine.validated) == pytest.approx(24, abs=1)  # the first comes later
    assert machine.validated[0] >= 0.09 * machine.updates
    gaps = [after - before for before, after in pairwise(machine.validated)]
    assert max(gaps[:-1]) <= 1.1 * min(gaps[:-1])
    assert gaps[-1] < 1.6 * gaps[0]
    assert machine.validated[-1] == machine.updates


def test_validations_that_take_long_come_seldom_and_translate_fewer_pairs():
    machine = Machine(validations=25, validation=400.0)
    taken = machine.run()

    assert 2 <= len(machine.validated) <= 4
    assert machine.validated == sorted(set(machine.validated))
    assert 0 < max(machine.portions) < 0.3
    assert taken == pytest.approx(SECONDS, rel=0.02)


def test_reading_that_takes_all_the_time_leaves_a_few_updates():
    machine = Machine(minutes=1.0)
    machine.run(reading=100.0)

    assert machine.updates <= 3
    assert machine.last_share == 1.0


@pytest.mark.parametrize(
    ("load", "kills"), [("quiet", (0.1, 0.3, 0.6)), ("slows down", (0.5,)), ("bursts", (0.75,))]
)
def test_a_killed_run_ends_on_time_and_the_rate_comes_to_its_end(load, kills):
    machine = Machine(load=LOADS[load](SECONDS))
    spent = 0.0
    for kill in kills:
        spent += machine.run(until=machine.time + kill * SECONDS - spent, reading=2.0)
        before = machine.checkpoint
        assert spent - before.plan["seconds"] < 0.035 * SECONDS * len(kills)
        machine.time += 86_400.0 if load == "quiet" else 0.0  # a night in which it was dead
    spent += machine.run(reading=2.0)

    # The seconds since its last checkpoint are not known any more.
    assert 0.8 * SECONDS < spent < SECONDS * (1.03 + 0.03 * len(kills))
    assert 0.95 <= machine.last_share <= 1.0
    assert machine.last_rate < 0.1


def test_a_killed_run_goes_on_at_the_rate_of_its_checkpoint():
    machine = Machine()
    machine.run(until=0.6 * SECONDS)
    rates = dict(machine.rates)
    update = machine.checkpoint.update + 1
    machine.run()

    assert machine.rates[update] == pytest.approx(rates[update], rel=1e-6)


def test_a_finished_run_trains_no_more():
    machine = Machine(minutes=4.0)
    machine.run()
    updates = machine.updates
    machine.rates.clear()
    machine.run(minutes=2.0)

    assert machine.updates == updates
    assert not machine.rates
    assert not machine.pace.extended


def test_more_minutes_raise_the_rate_and_bring_it_down_again():
    machine = Machine()
    machine.run()
    first = machine.updates
    taken = machine.run(minutes=2 * MINUTES)

    assert machine.pace.extended
    assert machine.updates == pytest.approx(2 * first, rel=0.1)
    again = [machine.rates[update] for update in range(first + 1, machine.updates + 1)]
    half = Machine(minutes=2 * MINUTES)
    half.run()
    assert again[10] == pytest.approx(half.rates[half.updates // 2], rel=0.03)
    assert max(again[1:]) == pytest.approx(again[0], rel=0.001)
    assert machine.last_rate < 0.02
    assert taken < 1.01 * SECONDS + 60
    assert machine.validated[-1] == machine.updates


def test_the_minutes_for_more_updates_follow_from_the_speed():
    machine = Machine(minutes=1.0, update=3.0, validation=1.0)
    machine.run(reading=12.0)

    # 12 s of reading, and 3 s an update with a fifth of the time kept for the end.
    assert machine.pace.minutes_for(800) == pytest.approx((12 + 800 * 3 / 0.8) / 60, abs=1)
