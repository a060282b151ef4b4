"""The one training loop.

What is drawn at an update is drawn from the seed and the number of the update alone, and the
batches of an epoch are a function of the seed and the epoch. So a run that was killed and goes on
from its last checkpoint does what it would have done, to the bit on the same machine.
"""

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from glassformer.data.batches import Batch
from glassformer.errors import InputError
from glassformer.model.transformer import Transformer
from glassformer.threads import torch_threads
from glassformer.training.batch_stream import Reader, seed_update
from glassformer.training.checkpoint import (
    RunState,
    checkpoints,
    remove_all_but,
    save_checkpoint,
)
from glassformer.training.checkpoint_averaging import averaged_updates, best, validations_since_best
from glassformer.training.optimiser import Learner, NotFiniteError, Update, new_learner, update
from glassformer.training.parallel.ranks import ALONE, RankLostError, Ranks
from glassformer.training.parallel.worker import enlist
from glassformer.training.reporting import Metrics, Reporter
from glassformer.training.schedule import Pace
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.prepare import Prepared
from glassformer.training.signals import StopSignal
from glassformer.training.validation import validate

__all__ = ["Stopped", "Trainer"]

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
    pace: Pace
    validation_batches: list[Batch]
    _asked: StopSignal = field(default_factory=StopSignal)
    _unread: list[tuple[str, Update, float]] = field(default_factory=list)  # with its seconds
    _gradient_norm: float = 0.0
    _rate: float = 0.0
    _backwards: bool = False

    @property
    def config(self) -> TrainConfig:
        return self.prepared.config

    @property
    def updates(self) -> int:
        return self.pace.updates

    @property
    def checkpoint_directory(self) -> Path:
        return self.config.run / "checkpoints"

    def run(self, ranks: Ranks = ALONE) -> None:
        """Update the weights until the last update or the end of patience.

        ``ranks`` are the processes that share each batch.
        """
        precision = self.state.precision
        learner = new_learner(
            self.model, self.optimiser, self.config, precision=precision, ranks=ranks
        )
        try:
            with self._asked:
                self._learn(learner)
        except RankLostError as error:
            raise InputError(
                f"another rank of this training ended or hangs ({error}); {self._last_good()};"
                " the same command continues from it"
            ) from error
        if self._asked.number:  # a signal during the last save is obeyed as well
            raise Stopped(self.state.update, self._asked.number)

    def _learn(self, learner: Learner) -> None:
        state, ranks = self.state, learner.ranks
        packed = self.prepared.packed
        enlist(learner, self.config, state, packed)
        reader = Reader(state, self.config, packed, ranks.share())
        saved = time.monotonic()
        while self._goes_on(ranks):
            with torch_threads(ranks.threads(torch.get_num_threads())):
                self._one_update(learner, reader)
            self.pace.passed(state.update)
            last = state.update == self.updates
            if state.update % REPORT_EVERY == 0 or last:
                self._report()
            validated = last or self.pace.validation_due(state.update)
            if validated:
                self._validate()
            late = time.monotonic() - saved > 60 * self.config.checkpoint_minutes
            if validated or late:
                self._save()
                saved = time.monotonic()
        if self._asked.number:
            self._save()

    def averaged_updates(self) -> list[int]:
        """The updates whose checkpoints are kept for the final mean, in the order of time."""
        return averaged_updates(self.state.validations, self.config)

    def best(self) -> dict[str, Any]:
        """The record of the best validation."""
        return best(self.state.validations, self.config)

    def _out_of_patience(self) -> bool:
        since = validations_since_best(self.state.validations, self.config)
        over = 0 < self.config.patience <= since
        if over:
            self.reporter.note(f"no better validation in {since}: training ends here")
        return over

    def _goes_on(self, ranks: Ranks) -> bool:
        """Whether there is another update; on all ranks alike, with the same rate."""
        number = self.state.update + 1
        ended = number > self.updates or self._out_of_patience()
        both_ways = self.pace.share(number) <= (self.config.both_ways or 0.0)
        stop, self._rate, self._backwards = ranks.agree(
            stop=self._asked.number or int(ended),
            rate=0.0 if ended else self.pace.rate(number),
            backwards=both_ways and number % 2 == 0,
        )
        if stop > 1:
            self._asked.number = stop
        return not stop

    def _one_update(self, learner: Learner, reader: Reader) -> None:
        state, config = self.state, self.config
        begin = time.monotonic()
        batches = reader.read(backwards=self._backwards)
        number = state.update + 1
        seed_update(config.seed, number, learner.ranks.rank)
        done = update(learner, batches, rate=self._rate)
        where = f"epoch {state.epoch}, batch {state.batch} of {batches[-1].tokens:,} tokens"
        where = f"update {number:,} ({where})"
        self._unread.append((where, done, time.monotonic() - begin))
        # A GPU is not waited for; until its figures are read, it skips what is not finite.
        if done.figures.device.type == "cpu" or number % REPORT_EVERY == 0:
            self._read_figures()
        state.update = number

    def _read_figures(self) -> None:
        """Add what the last updates came to, and the time that was waited for it, to the sums."""
        state = self.state
        for where, done, seconds in self._unread:
            begin = time.monotonic()
            try:
                loss, plain_loss, self._gradient_norm = done.read()
            except NotFiniteError as error:
                raise self._not_finite(where, error) from error
            seconds += time.monotonic() - begin
            state.tokens += done.tokens
            state.seconds += seconds
            sums = {
                "updates": 1,
                "loss": loss,
                "plain_loss": plain_loss,
                "tokens": done.tokens,
                "seconds": seconds,
            }
            state.window = {name: state.window.get(name, 0.0) + x for name, x in sums.items()}
        self._unread.clear()

    def _not_finite(self, what: str, reason: object) -> InputError:
        return InputError(
            f"{what} is not finite: {reason}; {self._last_good()}; try a smaller rate_factor or a"
            " longer warmup, with another --out"
        )

    def _last_good(self) -> str:
        kept = checkpoints(self.checkpoint_directory)
        return f"the last good checkpoint is {kept[-1]}" if kept else "there is no checkpoint yet"

    def _report(self) -> None:
        self._read_figures()
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
        self._read_figures()
        begin = time.monotonic()
        languages = self.prepared.languages
        try:
            found = validate(
                self.model,
                self.prepared.valid,
                self.validation_batches,
                self.prepared.tokenizers,
                language=languages[1] if languages else None,
                plain=self.config.plain,
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
        if not self.optimiser.state:  # stopped before the first update
            return
        self._read_figures()
        save_checkpoint(self.checkpoint_directory, self.model, self.optimiser, self.state)
        kept = {*self.averaged_updates(), self.state.update}
        remove_all_but(self.checkpoint_directory, kept)
