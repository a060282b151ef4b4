"""The number of threads that torch computes with.

torch has one setting for the whole program. A thread copies it at its first computation.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

__all__ = ["pool_of_single_threads", "quickest_threads", "torch_threads"]

_FEWER = 2.0  # times as fast, or it is no reason: larger products gain more from many threads
_STARTING = threading.Lock()


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Set ``count`` for this thread, and for threads that first compute in the block; then restore.

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


def quickest_threads(most: int, *, seconds: float = 0.15) -> int:
    """``most`` threads, or a half, a quarter and so on, if they compute far faster now.

    Threads wait for each other after each product. On a crowded machine, one of them often waits
    for a core, and holds up the others. Each number is tried for so many seconds.

    >>> quickest_threads(1)
    1
    """
    best, speed = most, 0.0
    count = most
    while most > 1 and count:
        with torch_threads(count):
            products = _products_a_second(seconds)
        if products > _FEWER * speed:
            best, speed = count, products
        count //= 2
    return best


def _products_a_second(seconds: float) -> float:
    left, right = torch.ones(512, 128), torch.ones(128, 512)
    begin, count = time.perf_counter(), 0
    while time.perf_counter() < begin + seconds:
        (left @ right).relu_()
        count += 1
    return count / (time.perf_counter() - begin)


def pool_of_single_threads(count: int) -> ThreadPoolExecutor:
    """A pool of ``count`` threads; in each, torch computes without helper threads.

    The setting of all other threads is unchanged as soon as the pool has started.
    """
    started = threading.Barrier(count + 1)

    def start() -> None:
        torch.get_num_threads()  # copies the setting
        started.wait()

    pool = ThreadPoolExecutor(count, initializer=start)
    with _STARTING, torch_threads(1):
        try:
            for _ in range(count):
                pool.submit(int)  # each starts a thread, because none is free
            started.wait()
        except BaseException:  # Ctrl+C, or no more threads: release the waiting threads
            started.abort()
            raise
    return pool
