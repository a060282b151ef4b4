"""Runs work on several threads, and sets the number of threads with which torch computes.

torch has one setting for the whole program. A thread copies the setting at its first computation.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

from glassformer.support.errors import InputError

__all__ = ["in_order", "torch_pool", "torch_threads"]

A = TypeVar("A")
B = TypeVar("B")

_STARTING = threading.Lock()


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Set ``count`` in the block, for this thread and for threads that first compute there.

    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_pool(count: int, threads: int = 1) -> ThreadPoolExecutor:
    """A pool of ``count`` threads, each of which computes with ``threads`` threads of torch.

    After the start of the pool, all other threads have their old setting.
    """
    started = threading.Barrier(count + 1)

    def start() -> None:
        torch.get_num_threads()  # copies the setting
        started.wait()

    pool = ThreadPoolExecutor(count, initializer=start)
    with _STARTING, torch_threads(threads):
        try:
            for _ in range(count):
                pool.submit(int)  # each starts a thread, because none is free
            started.wait()
        except BaseException:  # Ctrl+C, or no more threads: release the waiting threads
            started.abort()
            raise
    return pool


def in_order(
    work: Callable[[A], B],
    items: Iterable[A],
    *,
    threads: int,
    waits: Callable[[], bool] = lambda: False,
) -> Iterator[B]:
    """The results of ``work`` in the order of the items, as a stream of bounded memory.

    ``threads`` items are under way at once, and one more item waits. If ``threads`` is 1, the
    caller's thread works. While ``waits`` is true, the next item is still to come, so the results
    of earlier items come first. An InputError of ``items`` comes after the earlier items' results.

    >>> list(in_order(str.upper, ["a", "b", "c"], threads=2))
    ['A', 'B', 'C']
    """
    if threads == 1:
        yield from map(work, items)
        return
    pending: deque[Future[B]] = deque()
    end: StopIteration | InputError | None = None
    rest = iter(items)
    pool = ThreadPoolExecutor(threads)
    try:
        while end is None:
            try:
                pending.append(pool.submit(work, next(rest)))
            except (StopIteration, InputError) as error:
                end = error
            while pending and (end or waits() or len(pending) > threads or pending[0].done()):
                yield pending.popleft().result()
    finally:  # after a fault, or Ctrl+C, no further item begins
        pool.shutdown(cancel_futures=True)
    if isinstance(end, InputError):
        raise end
