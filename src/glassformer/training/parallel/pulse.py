"""Rank 0's pulse: the sign of life that the other ranks watch while they wait for it.

They may wait for hours: rank 0 reads the corpus, validates and scores alone. If it dies, its
connections break. If it hangs, as on a disk that does not answer, only its pulse stops.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Pulse", "PulseLostError"]

_KEY = "glassformer/pulse"
_SECONDS = 5.0  # between two beats
_PATIENCE = 300.0


class PulseLostError(RuntimeError):
    """Rank 0 gives no sign of life."""


class Pulse:
    """A number in the ranks' common store, which rank 0 counts up every five seconds.

    Both sides ask the store in a thread of their own: on a machine that hangs it does not answer.

    >>> from torch import distributed as dist
    >>> store = dist.HashStore()
    >>> with Pulse(store).kept(beating=True), Pulse(store).kept(beating=False) as watched:
    ...     watched.check()
    """

    def __init__(self, store: Any, *, patience: float = _PATIENCE) -> None:
        self.patience = patience
        self.lost = False
        self._store = store
        self._count = 0
        self._seen = time.monotonic()

    @contextmanager
    def kept(self, *, beating: bool) -> Iterator["Pulse"]:
        """Beat, or watch the beats of rank 0, until the context ends."""
        ended = threading.Event()
        act = self._beat if beating else self._watch
        thread = threading.Thread(target=_repeated, args=(act, ended), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join(timeout=1.0)

    def check(self) -> None:
        """Raises PulseLostError if no beat has come for the time of patience."""
        silence = time.monotonic() - self._seen
        if silence > self.patience:
            self.lost = True
            raise PulseLostError(f"rank 0 has hung for {silence:.0f} s")

    def _beat(self) -> None:
        self._store.add(_KEY, 1)

    def _watch(self) -> None:
        count = self._store.add(_KEY, 0)
        if count != self._count:
            self._count, self._seen = count, time.monotonic()


def _repeated(act: Callable[[], None], ended: threading.Event) -> None:
    try:
        act()
        while not ended.wait(_SECONDS):
            act()
    except RuntimeError:  # the store is gone, and so is the training
        return
