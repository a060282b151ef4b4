"""The one training loop.

Only the seed and an update's number determine the random numbers of the update. The seed and the
epoch determine the batches of an epoch. So a killed run that continues from a checkpoint ends with
the bits of an unbroken run on one machine.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import torch

from glassformer.evaluation import METRIC_NAMES
from glassformer.model.transformer import Transformer
from glassformer.support.cores import usable_cores
from glassformer.support.errors import InputError
from glassformer.support.progress import working
from glassformer.support.threads import torch_threads
from glassformer.training.batch_stream import BatchStream, seed_update
from glassformer.training.checkpoint import (
    RunState,
    check_optimiser,
    last_good,
    load_average,
    remove_old,
    save_checkpoint,
    whole,
)
from glassformer.training.checkpoint_averaging import averaged_updates, best
from glassformer.training.forecast import Forecast
from glassformer.training.loss_meter import LossMeter
from glassformer.training.optimiser import Learner, NotFiniteError
from glassformer.training.parallel.ranks import ALONE, RankLostError, Ranks
from glassformer.training.parallel.shares import Shares
from glassformer.training.reporting import Metrics, Reporter, beside
from glassformer.training.setup.learner import new_learner
from glassformer.training.setup.prepare import Prepared
from glassformer.training.signals import StopSignal
from glassformer.training.time_budget import Pace
from glassformer.training.validation import Validation, ValidationSet, validate

__all__ = ["Stopped", "Trainer"]

REPORT_EVERY = 50
_LOST = 0.03  # the greatest share of the option minutes that a kill can lose
_SAVING = 1 / 30  # the greatest share of the time for such checkpoints
_VALIDATION = 3.0  # times the updates of as many tokens: a validation, until one is measured


class Stopped(Exception):  # noqa: N818  no error: the run is saved and can continue
    """A signal stopped the run after a saved checkpoint. ``signal`` is the signal's number."""

    def __init__(self, update: int, signal_number: int) -> None:
        super().__init__(f"stopped and saved at update {update:,}; the same command continues")
        self.signal = signal_number


@dataclass
class Trainer:
    """A model with its data and its place in the run. :meth:`fit` is the loop."""

    model: Transformer
    prepared: Prepared
    state: RunState
    reporter: Reporter
    metrics: Metrics
    pace: Pace
    validation_set: ValidationSet
    scoring: float = 0.0  # the work after the last validation, as a number of validations

    def __post_init__(self) -> None:
        self.config, self.checkpoints = self.prepared.config, self.prepared.run.checkpoints
        self._stop, self._losses = StopSignal(), LossMeter(self.state)
        self._saving = 0.0  # seconds of the last checkpoint
        self._forecast = Forecast(
            self.pace,
            self.state.update,
            every=max(1, self.pace.updates // self.config.validations),
            validation=_VALIDATION
            * sum(batch.tokens for batch in self.validation_set.batches)
            / ((self.config.batch_tokens or 1) * self.config.accumulate),
            scoring=self.scoring,
        )

    def fit(self, ranks: Ranks = ALONE) -> None:
        """Update the weights until the last update, the end of patience or a signal.

        ``ranks`` are the processes that share each batch. Without torchrun, one process has all.
        """
        if ranks.size > 1:
            self.reporter.note(self._sharing(ranks.size))
        cores = ranks.threads(torch.get_num_threads())
        count = self.state.machine.get("shares", 0) if ranks.size == 1 else 0
        if ranks.size == 1 < cores and self.state.machine.get("shares") == 0:
            self._forecast.awake = min(cores, usable_cores())
        with Shares(count, cores) as shares:
            learner = new_learner(
                self.model,
                self.prepared.parts,
                options=self.config,
                state=self.state,
                checkpoints=self.checkpoints,
                ranks=replace(ranks, shares=shares),
            )
            self._fit(learner)

    def _sharing(self, ranks: int) -> str:
        """A line about the work of each rank."""
        if self.state.packing:
            count = f"accumulate {self.config.accumulate}; a multiple of {ranks} keeps all at work"
            return f"{ranks} ranks share the packed batches of each update ({count})"
        return (
            f"{ranks} ranks share each batch of {self.config.batch_tokens:,} tokens: a training as"
            " on one rank, but faster; more batch_tokens make larger batches"
        )

    def _fit(self, learner: Learner) -> None:
        try:
            with self._stop, working("training"):
                self._learn(learner)
        except (NotFiniteError, RankLostError) as error:
            remedy = "the same command continues from it"
            if isinstance(error, NotFiniteError):
                remedy = "try a smaller rate_factor or a longer warmup, in another directory"
            raise InputError(f"{error}; {last_good(self.checkpoints)}; {remedy}") from error
        if self._stop.number:  # a signal during the last save counts as well
            raise Stopped(self.state.update, self._stop.number)

    def _learn(self, learner: Learner) -> None:
        state, ranks = self.state, learner.ranks
        config, packed, parts = self.config, self.prepared.packed, self.prepared.parts
        stream = BatchStream(state, config, packed, ranks.share(), parts, seed=config.seed)
        saved = time.monotonic()
        while settings := self._next_update(ranks):
            began, computed = time.monotonic(), time.process_time()
            self._update(learner, stream, settings)
            seconds = time.monotonic() - began
            self._forecast.updated(seconds, computed=time.process_time() - computed)
            self.pace.passed(state.update)
            if state.update == 1:  # refuse an optimiser now, not hours later at a save
                check_optimiser(self.model, learner.optimiser)
            last = state.update == self.pace.updates
            if state.update % REPORT_EVERY == 0 or last:
                self._report(learning_rate=settings[0])
            validated = last or self.pace.validation_due(state.update)
            if validated:
                learner.optimiser.zero_grad(set_to_none=True)  # the decoder takes their memory
                self._validate()
            for line in self._forecast.lines(state.update):
                self.reporter.note(line)
            if validated or time.monotonic() - saved > self._seconds_between_checkpoints():
                self._save(learner)
                saved = time.monotonic()
        if self._stop.number and state.update:
            self._save(learner)

    def _seconds_between_checkpoints(self) -> float:
        seconds = 60 * self.config.checkpoint_minutes
        if self.config.minutes is None:
            return seconds
        return min(seconds, max(_LOST * 60 * self.config.minutes, self._saving / _SAVING))

    def _next_update(self, ranks: Ranks) -> tuple[float, bool] | None:
        """The learning rate and the direction of the next update, or None at the end of the run.

        All ranks get one answer, so a signal to any rank stops every rank.
        """
        number = self.state.update + 1
        ended = number > self.pace.updates or self._out_of_patience()
        both_ways = self.pace.share(number) <= (self.config.both_ways or 0.0)
        stop, rate, backwards = ranks.all_reduce_max(
            self._stop.number or ended,
            0.0 if ended else self.pace.rate(number),
            both_ways and number % 2 == 0,
        )
        if stop > 1:
            self._stop.number = int(stop)
        return None if stop else (rate, bool(backwards))

    def _out_of_patience(self) -> bool:
        validations, since = self.state.validations, 0
        if validations:
            since = len(validations) - 1 - validations.index(best(validations, self.config))
        over = 0 < self.config.patience <= since
        if over:
            self.reporter.note(f"no better validation in {since}: training ends here")
        return over

    def _update(self, learner: Learner, stream: BatchStream, settings: tuple[float, bool]) -> None:
        state, ranks, (rate, backwards) = self.state, learner.ranks, settings
        begin = time.monotonic()
        number = state.update + 1
        seed_update(self.config.seed, number, ranks.rank)
        batches = stream.next_batches(backwards=backwards)
        with torch_threads(ranks.shares.threads):
            result = learner.update(batches, rate=rate)
        place = f"epoch {state.epoch}, batch {state.batch} of {batches[-1].tokens:,} tokens"
        self._losses.add(f"update {number:,} ({place})", result, time.monotonic() - begin)
        state.update = number

    def _report(self, *, learning_rate: float) -> None:
        record = self._losses.report(learning_rate=learning_rate)
        self.metrics.write(record)
        left = self._forecast.left(self.state.update)
        self.reporter.update(record, updates=self.pace.updates, seconds_left=left)

    def _validate(self) -> None:
        self._losses.read()
        begin = time.monotonic()
        state = self.state
        try:
            validation = self.validation()
        except NotFiniteError as error:
            name = f"validation at update {state.update:,}"
            raise NotFiniteError(f"{name} is not finite: {error}") from error
        seconds = time.monotonic() - begin
        self._forecast.validated(state.update, seconds)
        state.seconds += seconds
        place = {"kind": "validation", "update": state.update}
        record = {**place, **validation.scores, "seconds": state.seconds}
        self.pace.validated(len(validation.pairs) / len(self.validation_set.pairs))
        state.validations.append(record)
        record["best"] = best(state.validations, self.config) is record
        self.metrics.write(record)
        self.reporter.validated(record, validation)

    def validation(self) -> Validation:
        """The scores of the model on the validation pairs, or on as many pairs as time allows."""
        deadline = self.pace.validation_deadline()
        return validate(self.model, self.validation_set, self.prepared.parts, deadline)

    def load_final_weights(self) -> list[int]:
        """Give the model the weights to deliver; return the updates of the averaged checkpoints.

        The trainer validates the mean of checkpoints (section 6.1). If the best checkpoint scores
        better than the mean, the trainer delivers that checkpoint. The metrics hold both scores.
        """
        state, config, note = self.state, self.config, self.reporter.note
        updates = whole(self.checkpoints, averaged_updates(state.validations, config), note)
        load_average(self.model, self.checkpoints, updates)
        if len(updates) == 1:
            return updates
        single = best([each for each in state.validations if each["update"] in updates], config)
        delivered, scores = [single["update"]], dict[str, Any]()
        with beside("scores of the mean", note):
            scores = self.validation().scores
        if scores:
            mean = {"kind": "average", "update": state.update, "updates": updates, **scores}
            mean["best"] = best([mean, single], config) is mean
            self.metrics.write(mean)
            delivered = updates if mean["best"] else delivered
            numbers = ", ".join(f"{update:,}" for update in updates)
            note(
                f"mean of the checkpoints {numbers}: {self._shown(mean)}; the best of them,"
                f" {single['update']:,}: {self._shown(single)}:"
                f" the {'mean' if mean['best'] else 'best'} is delivered"
            )
        load_average(self.model, self.checkpoints, delivered)
        return delivered

    def _shown(self, record: dict[str, Any]) -> str:
        metric = self.prepared.metric
        return f"{METRIC_NAMES[metric]} {record[metric]:.2f}, loss {record['loss']:.3f}"

    def _save(self, learner: Learner) -> None:
        self._losses.read()
        begin = time.monotonic()
        save_checkpoint(self.checkpoints, self.model, learner.optimiser, self.state)
        remove_old(self.checkpoints, averaged_updates(self.state.validations, self.config))
        self._saving = time.monotonic() - begin
