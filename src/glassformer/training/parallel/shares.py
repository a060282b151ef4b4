"""Shares of each batch, which the cores of one machine compute at once, a thread for each share.

OpenMP divides each operation among its threads, and each thread waits awake for the slowest. If
another program takes the core of one thread, all threads wait, a thousand times an update. The
threads of shares meet only a few times an update. The bits of an update do not depend on the
threads' order, so a busy machine computes the same bits.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch

from glassformer.support.threads import torch_pool

__all__ = ["WHOLE", "Shares"]

Result = TypeVar("Result")


class Shares:
    """``count`` shares of each batch, which as many threads compute as there are ``cores``.

    Further cores are threads of torch in each share. A single share is the whole batch, on the
    caller's thread. A count of 0 is a single share too, whose operations OpenMP divides among all
    cores.

    >>> with Shares(2, cores=2) as shares:
    ...     shares.map(str.upper, ["a", "b"])
    ['A', 'B']
    """

    def __init__(self, count: int = 0, cores: int = 1) -> None:
        self.count = max(1, count)
        self.threads = max(1, cores // self.count) if count != 1 else 1  # of torch, for each share
        # The first share draws torch's own random numbers.
        self.generators = [torch.Generator() for _ in range(self.count - 1)]
        workers = min(count, cores)
        self._pool = torch_pool(workers, self.threads) if workers > 1 else None

    def __enter__(self) -> "Shares":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown()

    def map(self, work: Callable[..., Result], *items: Iterable[Any]) -> list[Result]:
        """The results of ``work`` for each share's items."""
        return list(self._pool.map(work, *items) if self._pool else map(work, *items))

    def places(self) -> list[slice]:
        """The rows of each share, which are every n-th row, because length sorts the rows."""
        return [slice(share, None, self.count) for share in range(self.count)]

    def seed(self) -> None:
        """Seed the generators with torch's next random numbers."""
        for generator in self.generators:
            generator.manual_seed(int(torch.randint(2**63 - 1, ())))


WHOLE = Shares()
