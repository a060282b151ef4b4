"""As many items as fit into a time, by a clock that the test sets."""

import pytest

from glassformer.training.time_limit import Deadline, in_time


class Worker:
    """Doubles numbers; each takes so many seconds."""

    def __init__(self, each):
        self.each, self.time, self.chunks = each, 0.0, []

    def __call__(self, numbers):
        self.chunks.append(len(numbers))
        for _ in numbers:
            self.time += self.each(self.time) if callable(self.each) else self.each
        return [2 * number for number in numbers]

    def run(self, count, **limit):
        return in_time(self, range(count), Deadline(**limit, clock=lambda: self.time))


def test_without_a_limit_all_are_one_chunk_in_their_order():
    worker = Worker(1.0)

    assert list(worker.run(1_000).items()) == [(place, 2 * place) for place in range(1_000)]
    assert worker.chunks == [1_000]
    assert Worker(1.0).run(0) == {}


@pytest.mark.parametrize("count", [0, 1, 16, 17, 1_000])
def test_in_enough_time_all_are_done(count):
    worker = Worker(0.01)

    assert worker.run(count, seconds=20.0) == {place: 2 * place for place in range(count)}


def test_a_part_is_spread_over_all_and_the_same_each_time():
    worker = Worker(1.0)
    part = worker.run(1_000, seconds=300.0)

    assert 290 < len(part) <= 300
    assert worker.time <= 300.0
    assert list(part) == sorted(part)
    assert all(part[place] == 2 * place for place in part)
    assert 400 < sum(part) / len(part) < 600
    assert Worker(1.0).run(1_000, seconds=300.0) == part
    assert part.keys() >= Worker(1.0).run(1_000, seconds=100.0).keys()


@pytest.mark.parametrize("seconds", [0.0, -5.0, 3.0])
def test_the_first_chunk_is_always_done(seconds):
    assert len(Worker(1.0).run(1_000, seconds=seconds)) == 16


def test_a_machine_that_slows_down_ends_nearly_in_time():
    worker = Worker(lambda time: 0.1 if time < 50.0 else 1.0)
    worker.run(10_000, seconds=100.0)

    assert 90.0 < worker.time < 200.0
