"""SIGINT and SIGTERM as a request to stop, which the loop reads between two updates."""

import signal
from types import FrameType

__all__ = ["StopSignal"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """A ``with`` block in which ``number`` holds the arrived signal, or 0 before a signal.

    A second signal raises :class:`KeyboardInterrupt` at once. Python handles signals in the main
    thread only, so in another thread ``number`` stays 0.
    """

    def __init__(self) -> None:
        self.number = 0

    def __enter__(self) -> "StopSignal":
        self.number = 0
        try:
            self._before = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        except ValueError:
            self._before = {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self.number:
            raise KeyboardInterrupt
        self.number = number
