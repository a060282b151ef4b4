"""A signal as a request that is looked at when it suits."""

import signal
from types import FrameType, TracebackType

__all__ = ["StopSignal"]

_ASKED_BY = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """Within the block, ``number`` is the signal that asked to stop; 0 until one does.

    A second one is not waited with: :class:`KeyboardInterrupt`. Outside the main thread signals
    are not ours, and ``number`` stays 0.
    """

    def __init__(self) -> None:
        self.number = 0

    def __enter__(self) -> "StopSignal":
        self.number = 0
        try:
            self._before = {number: signal.signal(number, self._ask) for number in _ASKED_BY}
        except ValueError:
            self._before = {}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self.number:
            raise KeyboardInterrupt
        self.number = number
