"""How many threads torch computes with.

torch has one setting for the program. A thread takes it over when it first computes, and keeps it.
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
    """``count`` in this thread, and in those that first compute meanwhile; then as before.

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
    """A pool of ``count`` threads, in each of which torch computes without helpers.

    Elsewhere the setting is what it was as soon as they have begun.
    """
    begun = threading.Barrier(count + 1)

    def begin() -> None:
        torch.get_num_threads()  # takes the setting over
        begun.wait()

    pool = ThreadPoolExecutor(count, initializer=begin)
    with _STARTING, torch_threads(1):
        try:
            for _ in range(count):
                pool.submit(int)  # each makes a thread, for none of them is free
            begun.wait()
        except BaseException:  # Ctrl+C, or no more threads: who waits must not wait for ever
            begun.abort()
            raise
    return pool
