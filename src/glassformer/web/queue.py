"""Items of many requests in batches, each request in its turn: a fair queue before one thread.

While a batch runs, other requests come in; the next batch takes one item from each of them in turn,
round after round, until it is full. Whoever got something goes to the end of the queue. So requests
are brought together without any waiting for company, and one of a single sentence waits for the
batch that runs and for its turn, never for the end of a long document.

A batch is as large as its time allows: the budget grows while batches are quick, and shrinks after
one that was slow, so that the bound is in seconds whatever the model and the machine.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Batcher", "Run"]

Run = Callable[[Sequence[Any]], Sequence[Any]]
"""What answers a batch: one answer for each item, in their order."""

_FIRST_BUDGET = 512
_LARGEST_BUDGET = 1 << 16


@dataclass(eq=False)
class _Request:
    """The items of one request, how many of them have been given to a batch, and the answers."""

    key: Hashable
    run: Run
    items: Sequence[Any]
    costs: Sequence[int]
    future: Future[list[Any]] = field(default_factory=Future)
    given: int = 0
    answers: list[Any] = field(default_factory=list)

    @property
    def wants_more(self) -> bool:
        return self.given < len(self.items) and not self.future.done()


class Batcher:
    """A queue and the thread that serves it.

    `seconds`: what a batch should take. One item may take longer: it is never divided.
    `observe`: told of each batch how many items it had and how many seconds it took.

    >>> batcher = Batcher()
    >>> batcher.submit("upper", lambda words: [w.upper() for w in words], ["a", "b"]).result()
    ['A', 'B']
    >>> batcher.close()
    """

    def __init__(
        self, *, seconds: float = 0.5, observe: Callable[[int, float], None] | None = None
    ) -> None:
        self._seconds = seconds
        self._observe = observe
        self._queue: deque[_Request] = deque()
        self._budgets: dict[Hashable, int] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)
        self._thread.start()

    def submit(
        self, key: Hashable, run: Run, items: Sequence[Any], *, costs: Sequence[int] | None = None
    ) -> Future[list[Any]]:
        """The answers to `items`, once they are there; cancel it, and no more of them are run.

        `key`: requests of equal keys share batches, and then one of their `run` serves all.
        `costs`: of each item, in the unit of the budget, such as subwords; 1 for each if left out.

        Raises RuntimeError after :meth:`close`.
        """
        request = _Request(key, run, items, costs or [1] * len(items))
        if not items:
            request.future.set_result([])
            return request.future
        with self._changed:
            if self._closing:
                raise RuntimeError("the batcher is closed")
            self._queue.append(request)
            self._changed.notify()
        return request.future

    @property
    def waiting(self) -> int:
        """Items that no batch has taken yet."""
        with self._changed:
            return sum(len(one.items) - one.given for one in self._queue if one.wants_more)

    def close(self) -> None:
        """Answer what has been submitted, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while batch := self._next_batch():
            self._answer(batch)

    def _next_batch(self) -> list[tuple[_Request, int]]:
        """The places of the next items, as soon as there are any; none at the end."""
        with self._changed:
            while True:
                # Without those whose caller has gone, or that failed.
                self._queue = deque(one for one in self._queue if one.wants_more)
                if self._queue:
                    return self._taken()
                if self._closing:
                    return []
                self._changed.wait()

    def _taken(self) -> list[tuple[_Request, int]]:
        """One item of each request in turn, all of the first one's key, up to its budget."""
        key = self._queue[0].key
        left = self._budgets.get(key, _FIRST_BUDGET)
        turns = deque(one for one in self._queue if one.key == key)
        batch: list[tuple[_Request, int]] = []
        while turns and (not batch or turns[0].costs[turns[0].given] <= left):
            request = turns.popleft()
            batch.append((request, request.given))
            left -= request.costs[request.given]
            request.given += 1
            if request.wants_more:
                turns.append(request)
        served = {id(request) for request, _ in batch}
        others = [one for one in self._queue if id(one) not in served]
        again = {id(one): one for one, _ in batch if one.wants_more}
        self._queue = deque([*others, *again.values()])
        return batch

    def _answer(self, batch: Sequence[tuple[_Request, int]]) -> None:
        first = batch[0][0]
        started = time.monotonic()
        answers = _answers(first.run, [request.items[place] for request, place in batch])
        cost = sum(request.costs[place] for request, place in batch)
        seconds = time.monotonic() - started
        self._learn(first.key, cost, seconds)
        if self._observe:
            self._observe(len(batch), seconds)
        for (request, _), answer in zip(batch, answers, strict=True):
            request.answers.append(answer)
            ready = isinstance(answer, Exception) or len(request.answers) == len(request.items)
            if not ready or request.future.done():
                continue
            if not request.future.set_running_or_notify_cancel():
                continue  # cancelled this moment; from here on it cannot be
            if isinstance(answer, Exception):
                request.future.set_exception(answer)
            else:
                request.future.set_result(request.answers)

    def _learn(self, key: Hashable, cost: int, seconds: float) -> None:
        """Half the budget after a slow batch, twice after a quick one that used it."""
        budget = self._budgets.get(key, _FIRST_BUDGET)
        if seconds > 2 * self._seconds:
            budget = max(1, budget // 2)
        elif seconds < self._seconds and 2 * cost > budget:
            budget = min(2 * budget, _LARGEST_BUDGET)
        self._budgets[key] = budget


def _answers(run: Run, items: Sequence[Any]) -> Sequence[Any]:
    """The answers; where the batch fails, item by item, so that only the guilty one has an error.

    An error stands in its item's place.
    """
    try:
        return run(items)
    except Exception as error:
        if len(items) == 1:
            return [error]
    return [answer for item in items for answer in _answers(run, [item])]
