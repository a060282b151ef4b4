"""The mean losses of the updates since the last report, their tokens and time."""

import time
from typing import Any

from glassformer.evaluation import perplexity
from glassformer.training.checkpoint import RunState
from glassformer.training.optimiser import NotFiniteError, Update

__all__ = ["LossMeter"]


class LossMeter:
    """Adds up the losses of updates in ``state``, which a checkpoint keeps.

    A GPU computes while the host prepares the next updates. The meter reads losses late, because
    the host waits at a read. Until a read, the optimiser skips every update that is not finite.
    """

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._unread: list[tuple[str, Update, float]] = []
        self._gradient_norm = 0.0

    def add(self, name: str, update: Update, seconds: float) -> None:
        """Add an update, which errors call ``name``; read losses on the host at once."""
        self._unread.append((name, update, seconds))
        if update.losses.device.type == "cpu":
            self.read()

    def read(self) -> None:
        """Read the losses of all updates, and add the time that the host waits.

        Raises :class:`NotFiniteError`, which names the first update that is not finite.
        """
        state = self._state
        for name, update, seconds in self._unread:
            begin = time.monotonic()
            try:
                loss, unsmoothed, self._gradient_norm = update.read()
            except NotFiniteError as error:
                raise NotFiniteError(f"{name} is not finite: {error}") from error
            seconds += time.monotonic() - begin
            state.tokens += update.tokens
            state.seconds += seconds
            sums = {
                "updates": 1,
                "loss": loss,
                "plain_loss": unsmoothed,
                "tokens": update.tokens,
                "seconds": seconds,
            }
            state.window = {key: state.window.get(key, 0.0) + x for key, x in sums.items()}
        self._unread.clear()

    def report(self, *, learning_rate: float) -> dict[str, Any]:
        """The mean losses since the last report, as a record of ``metrics.jsonl``."""
        self.read()
        state, window = self._state, self._state.window
        state.window = {}
        unsmoothed = window["plain_loss"] / window["updates"]
        return {
            "kind": "update",
            "update": state.update,
            "epoch": state.epoch,
            "loss": window["loss"] / window["updates"],
            "perplexity": perplexity(min(unsmoothed, 700.0)),  # JSON has no infinity
            "learning_rate": learning_rate,
            "gradient_norm": self._gradient_norm,
            "tokens": state.tokens,
            "tokens_per_second": window["tokens"] / max(window["seconds"], 1e-9),
            "seconds": state.seconds,
        }
