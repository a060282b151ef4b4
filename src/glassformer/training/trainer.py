"""The one training loop.

What is drawn at an update is drawn from the seed and the number of the update alone, and the
batches of an epoch are a function of the seed and the epoch. So a run that was killed and goes on
from its last checkpoint does what it would have done, to the bit on the same machine.
"""

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.config import TrainConfig
from glassformer.data.batches import Batch, make_batch, plan_batches
from glassformer.data.packed import Packed
from glassformer.errors import InputError
from glassformer.model.transformer import Transformer
from glassformer.training.checkpoint import (
    RunState,
    checkpoints,
    remove_all_but,
    save_checkpoint,
)
from glassformer.training.optimiser import NotFiniteError, update
from glassformer.training.prepare import Prepared
from glassformer.training.progress import Metrics, Reporter
from glassformer.training.schedule import learning_rate
from glassformer.training.validation import validate

__all__ = ["Stopped", "Trainer", "epoch_plan", "total_updates"]

REPORT_EVERY = 50


class Stopped(Exception):  # noqa: N818  it is no error: the run was saved and can go on
    """The run was asked to stop, and has saved a checkpoint. ``signal`` is what asked."""

    def __init__(self, update: int, signal_number: int) -> None:
        super().__init__(f"stopped and saved at update {update:,}; the same command goes on")
        self.signal = signal_number


@dataclass
class Trainer:
    """A model, what it learns from, and where it is. :meth:`run` is the loop."""

    model: Transformer
    optimiser: torch.optim.Optimizer
    prepared: Prepared
    state: RunState
    reporter: Reporter
    metrics: Metrics
    updates: int
    validation_batches: list[Batch]
    stop_signal: int = 0
    _gradient_norm: float = 0.0

    @property
    def config(self) -> TrainConfig:
        return self.prepared.config

    @property
    def checkpoint_directory(self) -> Path:
        return self.config.run / "checkpoints"

    def run(self) -> None:
        """Update the weights until the updates are done, or patience is."""
        state, config = self.state, self.config
        self.model.train()
        due = max(1, self.updates // config.validations)
        saved = time.monotonic()
        batches = self._batches()
        with _signals(self._asked_to_stop):
            while state.update < self.updates and not self._out_of_patience():
                self._one_update(batches)
                last = state.update == self.updates
                if state.update % REPORT_EVERY == 0 or last:
                    self._report()
                validated = state.update % due == 0 or last
                if validated:
                    self._validate()
                late = time.monotonic() - saved > 60 * config.checkpoint_minutes
                if validated or late or self.stop_signal:
                    self._save()
                    saved = time.monotonic()
                if self.stop_signal:
                    break
        if self.stop_signal:  # what was asked in the last moment is saved as well
            raise Stopped(state.update, self.stop_signal)

    def averaged_updates(self) -> list[int]:
        """The updates whose checkpoints are kept for the final mean, in the order of time."""
        validations = self.state.validations
        if self.config.average == "none":
            return [v["update"] for v in validations[-1:]]
        if self.config.average == "best":
            validations = sorted(validations, key=lambda v: self._merit(v), reverse=True)
            return sorted(v["update"] for v in validations[: self.config.average_count])
        return [v["update"] for v in validations[-self.config.average_count :]]

    def best(self) -> dict[str, Any]:
        """The record of the best validation."""
        return max(self.state.validations, key=self._merit)

    def _merit(self, validation: dict[str, Any]) -> tuple[float, float]:
        # Where BLEU is equal (often 0 at first), the loss decides.
        by_loss = -validation["loss"]
        return (validation["bleu"], by_loss) if self.config.metric == "bleu" else (by_loss, 0.0)

    def _out_of_patience(self) -> bool:
        validations, patience = self.state.validations, self.config.patience
        if not patience or len(validations) <= patience:
            return False
        since = len(validations) - 1 - validations.index(self.best())
        if since >= patience:
            self.reporter.note(f"no better validation in {since}: training ends here")
        return since >= patience

    def _batches(self) -> Iterator[Batch]:
        """Batches from where the state is, epoch after epoch; it is moved on as they are read."""
        state = self.state
        while True:
            packed = self.prepared.packed(state.epoch)
            plan = epoch_plan(packed, self.config, state.epoch)
            while state.batch < len(plan):
                rows = plan[state.batch]
                state.batch += 1
                yield make_batch(packed, rows)
            state.epoch, state.batch = state.epoch + 1, 0

    def _one_update(self, source: Iterator[Batch]) -> None:
        state, config = self.state, self.config
        begin = time.monotonic()
        batches = [next(source) for _ in range(config.accumulate)]
        number = state.update + 1
        torch.manual_seed((config.seed << 32) + number)
        rate = learning_rate(
            number,
            updates=self.updates,
            d_model=self.model.config.d_model,
            warmup=config.warmup or 4000,
            factor=config.rate_factor or 1.0,
            anneal=config.anneal,
        )
        try:
            done = update(
                self.model,
                self.optimiser,
                batches,
                rate=rate,
                smoothing=config.label_smoothing,
                clip=config.clip,
                precision="bf16" if state.precision == "bf16" else "float32",
            )
        except NotFiniteError as error:
            raise self._not_finite(
                f"update {number:,} (epoch {state.epoch}, batch {state.batch} of"
                f" {batches[-1].source.size(0)} pairs)",
                error,
            ) from error
        state.update = number
        state.tokens += done.tokens
        seconds = time.monotonic() - begin
        state.seconds += seconds
        sums = {
            "updates": 1,
            "loss": done.loss,
            "plain_loss": done.plain_loss,
            "tokens": done.tokens,
            "seconds": seconds,
        }
        state.window = {name: state.window.get(name, 0.0) + x for name, x in sums.items()}
        self._gradient_norm = done.gradient_norm

    def _not_finite(self, what: str, reason: object) -> InputError:
        kept = checkpoints(self.checkpoint_directory)
        good = f"the last good checkpoint is {kept[-1]}" if kept else "there is no checkpoint yet"
        return InputError(
            f"{what} is not finite: {reason}; {good}; try a smaller rate_factor or a longer"
            " warmup, with another --run"
        )

    def _report(self) -> None:
        state, window = self.state, self.state.window
        plain = window["plain_loss"] / window["updates"]
        record = {
            "kind": "update",
            "update": state.update,
            "epoch": state.epoch,
            "loss": window["loss"] / window["updates"],
            "perplexity": math.exp(min(plain, 700.0)),
            "learning_rate": self.optimiser.param_groups[0]["lr"],
            "gradient_norm": self._gradient_norm,
            "tokens": state.tokens,
            "tokens_per_second": window["tokens"] / max(window["seconds"], 1e-9),
            "seconds": state.seconds,
        }
        per_update = state.seconds / state.update
        self.metrics.write(record)
        self.reporter.update(
            record,
            updates=self.updates,
            seconds_left=(self.updates - state.update) * per_update,
        )
        state.window = {}

    def _validate(self) -> None:
        begin = time.monotonic()
        languages = self.prepared.languages
        try:
            found = validate(
                self.model,
                self.prepared.valid,
                self.validation_batches,
                self.prepared.tokenizers,
                language=languages[1] if languages else None,
            )
        except NotFiniteError as error:
            raise self._not_finite(f"validation at update {self.state.update:,}", error) from error
        self.state.seconds += time.monotonic() - begin
        record = {
            "kind": "validation",
            "update": self.state.update,
            "loss": found.loss,
            "perplexity": math.exp(min(found.loss, 700.0)),
            "bleu": found.bleu,
            "chrf": found.chrf,
            "exact_match": found.exact_match,
            "seconds": self.state.seconds,
        }
        self.state.validations.append(record)
        record["best"] = self.best() is record
        self.metrics.write(record)
        self.reporter.validated(record, found, self.prepared.valid)

    def _save(self) -> None:
        save_checkpoint(self.checkpoint_directory, self.model, self.optimiser, self.state)
        kept = {*self.averaged_updates(), self.state.update}
        remove_all_but(self.checkpoint_directory, kept)

    def _asked_to_stop(self, number: int, _: FrameType | None) -> None:
        if self.stop_signal:  # the second time, at once
            raise KeyboardInterrupt
        self.stop_signal = number


def epoch_plan(packed: Packed, config: TrainConfig, epoch: int) -> list[NDArray[np.int64]]:
    """The rows of each batch of an epoch."""
    return plan_batches(
        packed.source_lengths,
        packed.target_lengths,
        tokens=config.batch_tokens or 4096,
        seed=config.seed,
        epoch=epoch,
    )


def total_updates(packed: Packed, config: TrainConfig) -> int:
    """The updates of the run: as said, or as many as the epochs come to."""
    if config.updates is not None:
        return config.updates
    per_epoch = len(epoch_plan(packed, config, 0)) / config.accumulate
    return max(1, round((config.epochs or 1.0) * per_epoch))


@contextmanager
def _signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let ``handler`` have SIGINT and SIGTERM; outside the main thread they are not ours."""
    try:
        before = {
            number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)
        }
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
