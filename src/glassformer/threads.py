"""The number of threads that torch computes with.

torch has one setting for the whole program. A thread copies it at its first computation.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

__all__ = ["pool_of_single_threads", "torch_threads"]

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
