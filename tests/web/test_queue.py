"""The queue: right answers, whatever comes together; fair turns; errors for the guilty alone."""

import itertools
import threading
from concurrent.futures import CancelledError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.web.queue import Batcher
from glassformer.web.security import RefusedError

LONG = 1 << 20  # over any budget: such an item is a batch of its own


@pytest.fixture
def held():
    """A batcher whose first batch waits; gives it, the batches seen, and what lets it go on."""
    batcher = Batcher()
    batches, gate, begun = [], threading.Event(), threading.Event()

    def run(items):
        batches.append(list(items))
        begun.set()
        assert gate.wait(20)
        return items

    batcher.submit("first", run, ["first"])
    assert begun.wait(20)
    yield batcher, batches, run, gate
    gate.set()
    batcher.close()


@given(
    requests=st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.lists(st.tuples(st.integers(), st.integers(1, 900)), max_size=8),
        ),
        max_size=12,
    )
)
def test_each_request_gets_its_own_answers_in_order(requests):
    batcher = Batcher()
    runs = {
        "a": lambda items: [("a", i) for i in items],
        "b": lambda items: [("b", i) for i in items],
    }

    futures = [
        batcher.submit(key, runs[key], [i for i, _ in items], costs=[cost for _, cost in items])
        for key, items in requests
    ]
    batcher.close()

    for (key, items), future in zip(requests, futures, strict=True):
        assert future.result(timeout=0) == [(key, i) for i, _ in items]


def test_what_waits_is_brought_together(held):
    batcher, batches, run, gate = held
    futures = [batcher.submit("one", run, [number]) for number in range(20)]
    gate.set()

    assert [future.result(20) for future in futures] == [[number] for number in range(20)]
    assert batches == [["first"], list(range(20))]


def test_a_short_request_does_not_wait_for_the_end_of_a_long_one(held):
    batcher, batches, run, gate = held
    long = batcher.submit("one", run, [f"long {n}" for n in range(100)], costs=[200] * 100)
    short = batcher.submit("one", run, ["short"], costs=[5])
    gate.set()

    assert short.result(20) == ["short"]
    assert "short" in batches[1]
    assert len(long.result(20)) == 100
    assert len(batches) > 3


def test_a_short_request_comes_before_the_next_part_of_a_long_one():
    """It came while a batch ran, and does not even share a batch with a long item."""
    batcher = Batcher()
    batches, gates, begun = [], threading.Semaphore(0), threading.Semaphore(0)

    def run(items):
        batches.append(list(items))
        begun.release()
        assert gates.acquire(timeout=20)
        return items

    long = batcher.submit("one", run, ["l0", "l1", "l2"], costs=[LONG] * 3)
    assert begun.acquire(timeout=20)
    short = batcher.submit("one", run, ["s"], costs=[5])
    gates.release(4)

    assert short.result(20) == ["s"]
    assert long.result(20) == ["l0", "l1", "l2"]
    assert batches == [["l0"], ["s"], ["l1"], ["l2"]]
    batcher.close()


def test_a_long_request_has_its_turn_whatever_comes():
    """Each batch brings a new short request; the long one still gets every second batch."""
    batcher = Batcher()
    batches = []

    def run(items):
        batches.append(list(items))
        if len(batches) < 20:
            batcher.submit("one", run, ["s"], costs=[5])
        return items

    batcher.submit("one", run, ["l"] * 6, costs=[LONG] * 6).result(20)
    batcher.close()

    assert ["l" in batch for batch in batches[:11]].count(True) == 6


def test_what_cannot_be_answered_in_time_is_refused_at_once(monkeypatch):
    """10 units a second, and twice that at best: 100 units may stand before the end."""
    clock = itertools.count(0, 0.5)
    monkeypatch.setattr("glassformer.web.queue.time.monotonic", lambda: next(clock))
    batcher = Batcher(patience=5.0)
    assert batcher.submit("one", list, ["a"], costs=[5]).result(20) == ["a"]
    gate, begun = threading.Event(), threading.Event()

    def hold(items):
        begun.set()
        assert gate.wait(20)
        return items

    batcher.submit("other", hold, ["held"])  # of an unknown speed
    assert begun.wait(20)
    long = batcher.submit("one", list, ["b", "c"], costs=[40, 40])
    with pytest.raises(RefusedError, match=r"^the answer would take longer than 5 s: send less"):
        batcher.submit("one", list, ["d"], costs=[101])
    with pytest.raises(RefusedError) as refused:
        batcher.submit("one", list, ["d"], costs=[51])  # 51 of the long one's units come before
    assert refused.value.status == 503
    assert refused.value.headers == {"Retry-After": "10"}
    short = batcher.submit("one", list, ["e"], costs=[49])
    gate.set()
    assert (long.result(20), short.result(20)) == (["b", "c"], ["e"])
    batcher.close()


def test_requests_that_cannot_share_a_batch_take_turns(held):
    batcher, batches, run, gate = held
    costs = [512] * 3  # one fills a batch
    for key in "abc":
        batcher.submit(key, run, [f"{key}{n}" for n in range(3)], costs=costs)
    gate.set()
    batcher.close()

    assert [batch[0][0] for batch in batches[1:7]] == ["a", "b", "c", "a", "b", "c"]


def test_an_item_that_fails_spoils_only_its_own_request(held):
    batcher, _, _, gate = held

    def shout(words):
        return [word.upper() for word in words]

    good = batcher.submit("words", shout, ["a", "b"])
    bad = batcher.submit("words", shout, ["c", 7, "d"])
    gate.set()

    assert good.result(20) == ["A", "B"]
    with pytest.raises(AttributeError, match="upper"):
        bad.result(20)
    assert batcher.submit("words", shout, ["e"]).result(20) == ["E"]


def test_a_request_that_is_given_up_is_not_run(held):
    batcher, batches, run, gate = held
    unwanted = batcher.submit("one", run, ["unwanted"])
    wanted = batcher.submit("one", run, ["wanted"])
    assert batcher.waiting == 2
    assert unwanted.cancel()
    assert batcher.waiting == 1
    gate.set()

    assert wanted.result(20) == ["wanted"]
    assert batches == [["first"], ["wanted"]]
    with pytest.raises(CancelledError):
        unwanted.result(20)


@pytest.mark.parametrize(
    ("pause", "expected"), [(0.01, [10, 20, 40]), (0.9, [5, 5, 5]), (2.0, [2, 1, 1])]
)
def test_batches_are_as_large_as_their_time_allows(monkeypatch, pause, expected):
    """A batch should take 0.5 s; each takes `pause`."""
    now, sizes = [0.0], []
    monkeypatch.setattr("glassformer.web.queue.time.monotonic", lambda: now[0])

    def run(items):
        sizes.append(len(items))
        now[0] += pause
        return items

    batcher = Batcher(seconds=0.5)
    batcher.submit("one", run, list(range(100)), costs=[100] * 100).result(60)
    batcher.close()

    assert sizes[:4] == [5, *expected]  # the first budget is 512


def test_closing_answers_what_waits_and_takes_no_more(held):
    batcher, _, run, gate = held
    waiting = batcher.submit("one", run, ["waiting"])
    gate.set()
    batcher.close()

    assert waiting.result(0) == ["waiting"]
    with pytest.raises(RuntimeError, match="closed"):
        batcher.submit("one", run, ["late"])


def test_nothing_asked_is_answered_at_once(held):
    batcher, batches, run, _ = held

    assert batcher.submit("one", run, []).result(0) == []
    assert batches == [["first"]]


def test_the_observer_is_told_of_each_batch():
    told = []
    batcher = Batcher(observe=lambda size, seconds: told.append((size, seconds >= 0)))
    batcher.submit("one", list, [1, 2]).result(20)
    batcher.close()

    assert told == [(2, True)]
