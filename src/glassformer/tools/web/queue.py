"""A fair queue before one thread: forms batches from items of many requests, in turn.

While a batch runs, other requests arrive. The next batch takes one item of each request in turn,
round after round, until the batch is full. When the batch ends, a request with items in the batch
goes to the end of the queue. An item much longer than the first item of the batch waits for another
batch. So a short request never waits for the end of a long request.

Once a batch takes the last item of a request, longer requests add at most an eighth to the batch.
The longer requests then wait a moment for the answered client's next request. If they delay short
requests by more than a quarter, they owe this time, and stay out of batches until it is made up.
So a long request leaves short requests 0.8 of their speed.

The median speed of recent full batches predicts the time of each answer. The server refuses a new
request whose answer would be late, and the newest requests if batches become slower.

The budget of a batch grows while batches are quick, and shrinks after a slow one. So a batch takes
about the same time on any model and machine.
"""

import math
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from statistics import fmean, median
from typing import Any

from glassformer.tools.web.security import RefusedError

__all__ = ["BatchFunction", "Batcher"]

BatchFunction = Callable[[Sequence[Any]], Sequence[Any]]
"""Answers the items of a batch, one answer for each item, in the order of the items."""
_ALIKE = 4  # an item of more than 4 times the first item's cost waits for another batch
_BATCH_SECONDS = 0.5  # intended time of a batch; a single long item takes longer
_SHORT = 64  # an item of this cost, such as a sentence, may join any batch
# The fixed time of a batch, in subwords: about 140 with d_model 64, about 100 with
# d_model 128.
_FIXED_COST = 128
_GROWTH = 8  # a batch that ends a request takes at most an eighth more from other requests
_PAUSE = 0.25  # after a short request, the thread waits this share of its time for the next one
_DELAY = 1.25  # a short request beside longer ones takes at most so many times its usual time
_RECENT = 6  # number of batches whose median speed counts
_CERTAIN = 0.85  # share of the patience for new requests; later requests and slowness need the rest
_NEW = 2.0  # seconds since arrival in which a request is new
_FIRST_BUDGET = 512
_LARGEST_BUDGET = 1 << 16


@dataclass(eq=False)
class _Request:
    """The items of one request, of which batches have taken the first `taken`."""

    key: Hashable
    function: BatchFunction
    items: Sequence[object]
    costs: Sequence[int]
    since: float  # time of arrival on the monotonic clock
    cost_left: int  # cost of the items that no batch has taken
    short: bool  # whether all items cost no more than the fixed time of a batch
    future: Future[list[Any]] = field(default_factory=Future)
    taken: int = 0
    answers: list[Any] = field(default_factory=list)

    @property
    def next_cost(self) -> int:
        """The cost of the first item that no batch has taken."""
        return self.costs[self.taken]

    @property
    def waits(self) -> bool:
        """Whether some items are in no batch yet."""
        return self.taken < len(self.items) and not self.future.done()


class Batcher:
    """A queue and its thread.

    `patience` is the seconds in which each request must have an answer. After each batch, the
    batcher calls `observe` with the number of items and the seconds. The batcher calls `waited`
    with the seconds that a request has waited for its first batch.

    >>> batcher = Batcher()
    >>> batcher.submit("upper", lambda words: [w.upper() for w in words], ["a", "b"]).result()
    ['A', 'B']
    >>> batcher.close()
    """

    def __init__(
        self,
        *,
        patience: float = math.inf,
        observe: Callable[[int, float], None] = lambda *_: None,
        waited: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._patience = patience
        self._observe = observe
        self._waited = waited
        self._queue: deque[_Request] = deque()
        self._running: list[_Request] = []  # requests with items in the running batch
        self._batch_began: float | None = None
        self._budgets: dict[Hashable, int] = defaultdict(lambda: _FIRST_BUDGET)
        self._further: dict[Hashable, int] = defaultdict(lambda: _LARGEST_BUDGET)
        # By key, and by whether the batch was full: small batches make a model look too slow.
        self._speeds: dict[Hashable, deque[float]] = defaultdict(lambda: deque(maxlen=_RECENT))
        # By key: the seconds of short requests without longer ones, and what longer ones owe.
        self._usual: dict[Hashable, deque[float]] = defaultdict(lambda: deque(maxlen=_RECENT))
        self._owed: dict[Hashable, float] = defaultdict(float)
        self._long_before = False  # whether the batch before had items of longer requests
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)
        self._thread.start()

    def submit(
        self,
        key: Hashable,
        function: BatchFunction,
        items: Sequence[object],
        *,
        costs: Sequence[int] | None = None,
    ) -> Future[list[Any]]:
        """A future with the answers to `items`. Cancelling the future drops the waiting items.

        Requests with equal `key` share batches; one request's function answers a whole batch.
        `costs` has a number for each item, in a unit such as subwords; the default is 1.

        Raises RefusedError if the answers cannot come in time, RuntimeError after :meth:`close`.
        """
        costs = costs or [1] * len(items)
        cost, now = sum(costs), time.monotonic()
        request = _Request(key, function, items, costs, now, cost, cost <= _FIXED_COST)
        if not items:
            request.future.set_result([])
            return request.future
        with self._changed:
            if self._closing:
                raise RuntimeError("the batcher is closed")
            self._queue.append(request)
            end = self._endings()[request]
            if self._is_late(request, end):
                self._queue.pop()
                raise self._too_late(end)
            self._changed.notify()
        return request.future

    @property
    def waiting(self) -> int:
        """Number of items that no batch has taken yet."""
        with self._changed:
            known = [*self._running, *self._queue]
            return sum(len(request.items) - request.taken for request in known if request.waits)

    @property
    def works(self) -> bool:
        """Whether the thread lives, and the running batch has begun within the patience."""
        began = self._batch_began
        late = began is not None and time.monotonic() - began > self._patience
        return self._thread.is_alive() and not late

    def close(self) -> None:
        """Answer all requests in the queue, then end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _endings(self) -> dict[_Request, float]:
        """The seconds until the answer of each waiting request, if all requests take turns."""
        waiting = (request for request in (*self._running, *self._queue) if request.waits)
        by_seconds = sorted(
            ((self._seconds_left(each), each) for each in waiting), key=itemgetter(0)
        )
        endings, end, before = {}, 0.0, 0.0
        for place, (seconds, request) in enumerate(by_seconds):
            end += (seconds - before) * (len(by_seconds) - place)
            before = seconds
            endings[request] = end
        return endings

    def _seconds_left(self, request: _Request) -> float:
        """The seconds for the request's items, at the key's median speed; 0 if no batch has run."""
        speeds = self._speeds.get((request.key, True)) or self._speeds.get((request.key, False))
        cost = request.cost_left * (1 + _FIXED_COST / self._budgets[request.key])
        return cost / median(speeds) if speeds else 0.0

    def _is_late(self, request: _Request, end: float) -> bool:
        """Whether an answer ``end`` seconds from now is too late; a new request needs a margin."""
        waited = time.monotonic() - request.since
        return waited + end > self._patience * (_CERTAIN if waited < _NEW else 1.0)

    def _too_late(self, end: float) -> RefusedError:
        return RefusedError(
            503,
            f"the answer would take longer than {self._patience:g} s:"
            " send less text at once, or try again later",
            reason="queue",
            headers={"Retry-After": str(math.ceil(end / 2))},  # by then half of the queue is done
        )

    def _refuse_late_ones(self) -> None:
        """Refuse the newest late requests until every other request gets an answer in time."""
        while late := [each for each in self._endings().items() if self._is_late(*each)]:
            newest, end = max(late, key=lambda each: each[0].since)
            with suppress(InvalidStateError):  # the client has just cancelled the request
                newest.future.set_exception(self._too_late(end))

    def _work(self) -> None:
        while batch := self._next_batch():
            seconds = self._answer(batch)
            with self._changed:
                longer = [request for request in self._running if request.waits]
                owed, short = self._owe(), any(request.short for request in self._running)
                self._queue.extend(longer)
                alone = short and not any(request.short for request in self._queue)
                self._running = []
                self._refuse_late_ones()
                if alone and self._queue and not self._closing:
                    self._changed.wait(max(_PAUSE * seconds, min(owed, 2 * seconds)))

    def _owe(self) -> float:
        """Count by how much the longer requests delay the short ones; return what they owe."""
        key, short = self._running[0].key, [each for each in self._running if each.short]
        if short:
            seconds = time.monotonic() - fmean(request.since for request in short)
            if len(short) == len(self._running) and not self._long_before:
                self._usual[key].append(seconds)
            beyond = seconds - _DELAY * fmean(self._usual[key] or [seconds])
            self._owed[key] = min(max(self._owed[key] + beyond, 0.0), 2 * _BATCH_SECONDS)
        self._long_before = len(short) < len(self._running)
        return self._owed[key]

    def _next_batch(self) -> list[tuple[_Request, int]]:
        """The items of the next batch, each as a request and a place; empty after :meth:`close`."""
        with self._changed:
            while True:
                # The queue drops cancelled and failed requests.
                self._queue = deque(request for request in self._queue if request.waits)
                if self._queue:
                    return self._take_batch()
                if self._closing:
                    return []
                self._changed.wait()

    def _take_batch(self) -> list[tuple[_Request, int]]:
        """Take items in turn from the requests with the first request's key, up to the budget."""
        key = self._queue[0].key
        left, shared = self._budgets[key], False
        turns = [request for request in self._queue if request.key == key]
        longest = max(_SHORT, _ALIKE * turns[0].next_cost)
        batch: list[tuple[_Request, int]] = []
        cost, before = 0, -1
        while before < cost:  # a round
            before = cost
            for request in turns:
                if batch and request.next_cost > min(left, longest):
                    continue
                if not request.taken:
                    self._waited(time.monotonic() - request.since)
                batch.append((request, request.taken))
                cost += request.next_cost
                left -= request.next_cost
                request.cost_left -= request.next_cost
                request.taken += 1
            some_left = [request for request in turns if request.waits]
            if some_left and len(some_left) < len(turns):  # a request has no items left
                shared = True
                self._further[key] = (_FIXED_COST + cost) // _GROWTH
            left, turns = min(left, self._further[key]), some_left
        if not shared:
            self._further[key] = min(2 * self._further[key], _LARGEST_BUDGET)
        batch = self._without_debtors(batch)
        self._running = list(dict.fromkeys(request for request, _ in batch))
        self._queue = deque(request for request in self._queue if request not in self._running)
        return batch

    def _without_debtors(self, batch: list[tuple[_Request, int]]) -> list[tuple[_Request, int]]:
        """The batch without the items of longer requests, if they owe short requests time."""
        counts, key = Counter(request for request, _ in batch), batch[0][0].key
        longer = [request for request in counts if not request.short]
        if len(longer) == len(counts) or (self._usual[key] and not self._owed[key]):
            return batch
        for request in longer:
            request.taken -= counts[request]
            request.cost_left = sum(request.costs[request.taken :])
        return [(request, place) for request, place in batch if request.short]

    def _answer(self, batch: Sequence[tuple[_Request, int]]) -> float:
        """Compute the answers and set the futures; return the seconds of the computation."""
        first = batch[0][0]
        started = self._batch_began = time.monotonic()
        answers = _answers(first.function, [request.items[place] for request, place in batch])
        seconds = time.monotonic() - started
        self._batch_began = None
        cost = sum(request.costs[place] for request, place in batch)
        full = 2 * cost > self._budgets[first.key]
        self._speeds[first.key, full].append((_FIXED_COST + cost) / max(seconds, 1e-6))
        self._adapt_budget(first.key, cost, seconds)
        self._observe(len(batch), seconds)
        for (request, _), answer in zip(batch, answers, strict=True):
            request.answers.append(answer)
            with suppress(InvalidStateError):  # cancelled, or failed by another item
                if isinstance(answer, Exception):
                    request.future.set_exception(answer)
                elif len(request.answers) == len(request.items):
                    request.future.set_result(request.answers)
        return seconds

    def _adapt_budget(self, key: Hashable, cost: int, seconds: float) -> None:
        """Halve the budget after a slow batch; double the budget after a quick large batch."""
        budget = self._budgets[key]
        if seconds > 2 * _BATCH_SECONDS:
            self._budgets[key] = max(_SHORT, budget // 2)
        elif seconds < _BATCH_SECONDS and 2 * cost > budget:
            self._budgets[key] = min(2 * budget, _LARGEST_BUDGET)


def _answers(function: BatchFunction, items: Sequence[object]) -> Sequence[object]:
    """The answers, with an Exception in the place of each item that fails.

    If the batch fails, the function answers each item alone: only the faulty item gets an error.
    """
    try:
        return function(items)
    except Exception as error:
        if len(items) == 1:
            return [error]
    return [answer for item in items for answer in _answers(function, [item])]
