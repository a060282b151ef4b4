"""The queue: right answers, whatever comes together; fair turns; errors for the guilty alone."""

import threading
from collections import Counter
from concurrent.futures import CancelledError
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.tools.web import queue
from glassformer.tools.web.queue import Batcher
from glassformer.tools.web.security import RefusedError

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


class Machine:
    """A batch takes simulated seconds: those of a fixed part, and of each unit of cost."""

    def __init__(self, monkeypatch, *, fixed=0.128, unit=0.001):
        self.now, self.fixed, self.unit, self.batches = 0.0, fixed, unit, []
        self.gate, self.begun = threading.Event(), threading.Semaphore(0)
        self.gate.set()
        monkeypatch.setattr(queue.time, "monotonic", lambda: self.now)

    def run(self, items):
        """Each item is a name and its cost."""
        self.begun.release()
        assert self.gate.wait(20)
        self.batches.append([name for name, _ in items])
        self.now += self.fixed + self.unit * sum(cost for _, cost in items)
        return items

    def hold(self, batcher):
        """All later requests come while a first batch runs."""
        self.gate.clear()
        self.submit(batcher, "first", [1])
        assert self.begun.acquire(timeout=20)
        self.batches.clear()

    def submit(self, batcher, name, costs):
        """The next one comes a moment later."""
        self.now += 1e-6
        items = [(name, cost) for cost in costs]
        return batcher.submit("one", self.run, items, costs=costs)


def answered(monkeypatch, *, singles, bulk, fixed=0.128, seconds=60.0):
    """The numbers of singles that come one after the other, and of the bulk's items in that time.

    The client of an answered one sends its next at once.
    """
    machine, counts, batcher = Machine(monkeypatch, fixed=fixed), Counter(), Batcher()
    machine.hold(batcher)

    def ask(_=None):
        if machine.now < seconds:
            machine.submit(batcher, "single", [15]).add_done_callback(ask)

    for _ in range(singles):
        ask()
    if bulk:
        machine.submit(batcher, "bulk", [15] * 5000)
    machine.gate.set()
    while machine.now < seconds:
        assert batcher.works
    for batch in list(machine.batches):
        counts.update(batch)
    machine.unit = machine.fixed = 1e-6
    batcher.close()
    return counts["single"], counts["bulk"]


@pytest.mark.parametrize(
    ("singles", "fixed"), [(1, 0.128), (4, 0.128), (64, 0.128), (1, 0.0), (2, 0.01), (16, 0.0)]
)
def test_a_bulk_leaves_others_four_fifths_of_their_speed_and_comes_forward(
    monkeypatch, singles, fixed
):
    """Whatever part of a batch's time is fixed: without one, a second item takes as long again."""
    alone, _ = answered(monkeypatch, singles=singles, bulk=False, fixed=fixed)
    beside, bulk = answered(monkeypatch, singles=singles, bulk=True, fixed=fixed)

    assert beside / alone >= 0.8
    # Nearly as many items as each of them has requests, if the bulk need not wait.
    assert bulk >= (0.8 if fixed > 0.1 else 0.2) * beside / singles


def test_a_bulk_waits_a_moment_for_the_next_request_of_an_answered_client(monkeypatch):
    """Its batch would begin before the client has read its answer."""
    monkeypatch.setattr(queue, "_PAUSE", 1e9)  # times the seconds of a batch
    batcher, gates, batches = Batcher(), threading.Semaphore(0), []
    begun = threading.Event()

    def run(items):
        begun.set()
        assert gates.acquire(timeout=20)
        batches.append(list(items))
        return items

    batcher.submit("one", run, ["first"])
    assert begun.wait(20)
    bulk = batcher.submit("one", run, ["b"] * 9, costs=[200] * 9)
    single = batcher.submit("one", run, ["s"])
    gates.release(100)
    for _ in range(3):
        assert single.result(20) == ["s"]
        assert not bulk.done()
        single = batcher.submit("one", run, ["s"])
    batcher.close()  # no longer waits

    assert bulk.result(0) == ["b"] * 9
    assert [batch for batch in batches if "s" in batch] == [["b", "s"]] * 4


def test_without_company_a_bulk_has_more_of_each_batch(monkeypatch):
    monkeypatch.setattr(queue, "_PAUSE", 0)
    machine, batcher = Machine(monkeypatch), Batcher()
    machine.hold(batcher)
    machine.submit(batcher, "bulk", [15] * 200)
    machine.submit(batcher, "single", [15])
    machine.gate.set()
    batcher.close()

    sizes = [len(batch) for batch in machine.batches]
    assert sizes[:6] == [1, 3, 2, 3, 6, 11]  # the held one, then with the single's end
    assert max(sizes) >= 30


def test_overload_is_refused_at_once_and_the_others_are_answered_in_time(monkeypatch):
    """100 requests of 200 sentences at once, before the server knows its speed."""
    machine, batcher, ends = Machine(monkeypatch), Batcher(patience=60.0), []
    machine.hold(batcher)
    for n in range(100):
        future = machine.submit(batcher, n, [15] * 200)
        future.add_done_callback(lambda future: ends.append((machine.now, future.exception())))
    machine.gate.set()
    while len(ends) < 100:
        assert batcher.works
    answered = [end for end, error in ends if error is None]
    assert 10 < len(answered) < 20  # 16 of them take 60 seconds
    assert max(answered) < 55  # a new request must have its answer within 0.85 of 60 seconds
    assert max(end for end, error in ends if error) < 2

    machine.hold(batcher)  # now it knows
    begin, futures, later = machine.now, [], []
    for _ in range(100):
        with suppress(RefusedError):
            futures.append(machine.submit(batcher, "late", [15] * 200))
    for future in futures:
        future.add_done_callback(lambda future: later.append((machine.now, future.exception())))
    assert abs(len(futures) - len(answered)) <= 1
    machine.gate.set()
    batcher.close()
    assert max(end for end, _ in later) - begin < 60
    assert len(later) == len(futures)
    assert all(end - begin < 2 for end, error in later if error)


@pytest.mark.parametrize("fixed", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("cost", [1, 15, 60])
def test_small_batches_do_not_make_a_server_refuse_what_it_can_answer(monkeypatch, fixed, cost):
    """Singles take the fixed time of a batch each, which a burst shares."""
    machine, batcher = Machine(monkeypatch, fixed=fixed), Batcher(patience=60.0)
    machine.submit(batcher, "warm-up", [15] * 500).result(20)
    for _ in range(30):
        machine.submit(batcher, "single", [cost]).result(20)
    machine.hold(batcher)
    begin, futures, refused = machine.now, [], []
    for n in range(100):
        with suppress(RefusedError):
            futures.append(machine.submit(batcher, n, [15] * 140))
            futures[-1].add_done_callback(
                lambda f: refused.append(machine.now) if f.exception() else None
            )
    machine.gate.set()
    batcher.close()

    assert 0.75 * 60 < machine.now - begin < 60  # so long it works on what it has admitted
    assert all(when - begin < 3 for when in refused)


def test_who_comes_again_when_it_is_told_finds_room(monkeypatch):
    machine, batcher = Machine(monkeypatch), Batcher(patience=60.0)
    machine.submit(batcher, "warm-up", [15] * 500).result(20)
    accepted, waits = [], []
    for _ in range(2):
        while machine.begun.acquire(timeout=0):
            pass
        begin = machine.now
        machine.hold(batcher)
        futures = []
        for n in range(60):
            try:
                futures.append(machine.submit(batcher, n, [15] * 140))
            except RefusedError as refused:
                waits.append(int(refused.headers["Retry-After"]))
        machine.gate.set()
        for future in futures:
            future.exception(20)
        accepted.append(len(futures))
        assert 0.4 * (machine.now - begin) < min(waits) < 0.6 * (machine.now - begin)
        machine.now = max(machine.now, begin + min(waits))
    assert accepted[1] >= 0.9 * accepted[0] > 9
    batcher.close()


def test_a_server_that_becomes_slower_gives_up_the_newest(monkeypatch):
    machine, batcher = Machine(monkeypatch), Batcher(patience=60.0)
    machine.submit(batcher, "before", [15]).result(20)
    machine.begun.acquire()
    machine.hold(batcher)
    futures = [machine.submit(batcher, n, [15] * 200) for n in range(10)]
    machine.unit, machine.fixed = 0.003, 0.384
    machine.gate.set()
    batcher.close()

    errors = [future.exception() is not None for future in futures]
    assert errors == sorted(errors)  # the first are answered
    assert errors.count(False) in range(3, 8)


def test_what_cannot_be_answered_in_time_is_refused_at_once(monkeypatch):
    machine = Machine(monkeypatch, fixed=0.0, unit=0.1)
    batcher = Batcher(patience=5.0)
    machine.submit(batcher, "first", [128]).result(20)  # at twice this speed, with a fixed part
    machine.gate.clear()
    long = machine.submit(batcher, "long", [40, 8])
    with pytest.raises(RefusedError, match=r"^the answer would take longer than 5 s: send less"):
        machine.submit(batcher, "d", [61])
    with pytest.raises(RefusedError) as refused:
        machine.submit(batcher, "d", [31])  # as much of the long one comes before its end
    assert (refused.value.status, refused.value.reason) == (503, "queue")
    assert refused.value.headers == {"Retry-After": "3"}
    short = machine.submit(batcher, "e", [15])
    machine.gate.set()
    assert len(long.result(20) + short.result(20)) == 3
    batcher.close()


def test_a_batch_that_takes_longer_than_a_request_may_is_seen(monkeypatch):
    machine = Machine(monkeypatch)
    batcher = Batcher(patience=5.0)
    assert batcher.works
    machine.gate.clear()
    future = machine.submit(batcher, "a", [1])
    while batcher.waiting:
        assert not future.done()
    assert batcher.works
    machine.now = 6.0
    assert not batcher.works
    machine.gate.set()
    future.result(20)
    batcher.close()
    assert not batcher.works


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
    monkeypatch.setattr("glassformer.tools.web.queue.time.monotonic", lambda: now[0])

    def run(items):
        sizes.append(len(items))
        now[0] += pause
        return items

    batcher = Batcher()
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
