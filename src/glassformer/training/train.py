"""``train(config)``, which makes a scored bundle from files, or continues a stopped run."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from glassformer.bundle import save_bundle
from glassformer.config import LENGTH_PENALTY
from glassformer.data.batches import make_batch
from glassformer.evaluation import Scores, numbers
from glassformer.parts import Parts, check_own
from glassformer.support.displays import Shown, Table, notebook
from glassformer.support.errors import InputError, check_kind, counted
from glassformer.support.progress import shown_progress
from glassformer.support.threads import torch_threads
from glassformer.training.batch_stream import epoch_plan
from glassformer.training.checkpoint import RunState, load_newest, newest_state
from glassformer.training.final_bundle import final_bundle, model_card, report_end
from glassformer.training.loop import Trainer
from glassformer.training.malloc import keep_freed_memory
from glassformer.training.pace import Schedule, SteadyPace
from glassformer.training.parallel.ranks import from_torchrun, machine_threads
from glassformer.training.parallel.worker import settings_of_rank_0
from glassformer.training.reporting import CellReporter, Metrics, Reporter, TextReporter, beside
from glassformer.training.scorer import Scorer, validations_of_the_end
from glassformer.training.setup.machine import (
    check_precision,
    chosen_packing,
    chosen_precision,
    chosen_shares,
    record_machine,
)
from glassformer.training.setup.memory import memory_needed
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.prepare import Prepared, prepare
from glassformer.training.setup.run_directory import RunDirectory
from glassformer.training.time_budget import Pace, TimedPace
from glassformer.training.validation import ValidationSet
from glassformer.trial import try_parts

__all__ = ["Run", "new_trainer", "train"]


@dataclass(frozen=True, repr=False)
class Run(Shown):
    """A finished training, with the directory of the bundle and the scores.

    If the search for the scores fails, ``validation`` is empty and ``test`` is None.
    """

    directory: Path
    validation: dict[str, Any]
    test: Scores | None

    def records(self) -> Table:
        """The scores on the validation pairs, then on the test pairs."""
        texts = {"validation": self.validation, "test": self.test.as_dict() if self.test else {}}
        return Table({"text": name, **numbers(scores)} for name, scores in texts.items() if scores)


def train(
    config: TrainConfig,
    reporter: Reporter | None = None,
    *,
    parts: Parts | None = None,
    began: float | None = None,
) -> Run:
    """Train a translator, or continue the run of an earlier call with equal options.

    ``parts`` holds the forms to train and search with; None means the forms of ``config.plain``.

    ``config.minutes`` counts from ``began``, a value of ``time.monotonic()``, or from this call.
    Unusable data, a directory that holds a run with other options, or a loss that is not finite
    raise :class:`~glassformer.support.errors.InputError`.
    """
    check_kind(config, TrainConfig, wants="train takes TrainConfig(pairs=(…, …), run=…)")
    began = time.monotonic() if began is None else began
    threads = torch_threads(machine_threads(config.threads))
    lock = RunDirectory(config.run).locked()
    reporter = reporter or (CellReporter() if notebook() else TextReporter())
    with lock, threads, shown_progress(), closing(reporter):
        prepared = prepare(config, parts, note=reporter.note)
        if prepared.parts.keep_memory:
            keep_freed_memory()
        trainer = new_trainer(prepared, reporter, lambda: time.monotonic() - began)
        with closing(trainer.metrics):
            settings = settings_of_rank_0(trainer)
            with from_torchrun(prepared.device, settings) as ranks:
                trainer.fit(ranks)
            averaged, model = trainer.load_final_weights(), trainer.model
            scorer, note = Scorer(prepared, trainer.pace.deadline()), reporter.note
            alpha, scores = LENGTH_PENALTY, dict[str, Scores]()
            with beside("length penalty", note):
                alpha = scorer.length_penalty(model)
            with beside("scores", note):
                scores = scorer.scores(model, length_penalty=alpha)
            place = {"kind": "score", "update": trainer.state.update, "length_penalty": alpha}
            place["metric"] = prepared.metric
            for name, result in scores.items():
                numbers = {key: x for key, x in result.as_dict().items() if x is not None}
                trainer.metrics.write({**place, "name": name, **numbers})
        gains, card = dict[str, str](), dict[str, object]()
        with beside("scores of the parent", note):
            gains = scorer.gains(scores)
        with beside("model card", note):
            card = model_card(trainer, averaged=averaged, scores=scores)
        card |= {f"{name}, parent and child": gain for name, gain in gains.items()}
        bundle = final_bundle(trainer, card, length_penalty=alpha)
        save_bundle(bundle, config.run)
        report_end(trainer, alpha, scores)
        for name, gain in gains.items():
            note(f"{name}: {gain}")
        validation = scores["validation"].as_dict() if scores else {}
        return Run(config.run, validation, scores.get("test"))


def new_trainer(
    prepared: Prepared, reporter: Reporter, clock: Callable[[], float] = time.monotonic
) -> Trainer:
    """The trainer, whose model and place in the run are new or come from the last checkpoint.

    ``clock`` gives the seconds that this process has spent on the run.
    """
    config, run = prepared.config, prepared.run
    device, parts = prepared.device, prepared.parts
    torch.manual_seed(config.seed)
    model = prepared.start.model(config, prepared.tokenizers).to(device)
    try_parts(model, parts, training=True)
    if newest := newest_state(run.checkpoints):
        check_own(newest.parts, parts.own, f"{config.run}: the run was trained with")
    state = load_newest(run.checkpoints, model, reporter.note)
    if state is None:
        packing, reason = chosen_packing(config, model, parts, prepared.packed)
        state = RunState(data_hash=prepared.data_hash, parts=parts.own, packing=packing)
        if reason:
            reporter.note(reason)
    else:
        reporter.note(f"continuing from update {state.update:,}")
    if not state.precision:  # measure only once: another precision later would change the weights
        state.precision, reason = chosen_precision(config, device, parts)
        if reason:
            reporter.note(reason)
    check_precision(state.precision, parts)
    tokens = (config.batch_tokens or 0) * config.accumulate
    shares = chosen_shares(model, parts, tokens=tokens)
    if line := record_machine(state, device, shares, graph=config.graph):
        reporter.note(line)
    validation_set, scoring = _validation_set(prepared), validations_of_the_end(prepared)
    pace = _pace(prepared, model.config.d_model, state=state, scoring=scoring, clock=clock)
    if pace.extended:  # else the old best validation would end the run
        state.validations.clear()
        reporter.note("a longer run than before: the learning rate rises again, and falls anew")
    if own := parts.own.get("optimiser"):
        weights = "all weights" + " but the blocks' matrices" * (config.optimiser == "muon")
        reporter.note(f"optimiser {own} of {weights}: its learning rate is the schedule's")
    if own := parts.own.get("schedule"):
        reporter.note(f"schedule {own}: it is the learning rate, without anneal and decay")
    count = sum(weight.numel() for weight in model.parameters())
    shares = state.machine.get("shares", 0)
    reporter.note(
        f"model: {count:,} parameters, {counted(len(prepared.packed), 'pair')},"
        f" {_length(config, pace.updates)}, {state.precision} on {device}"
        f"{f', each batch in {shares} shares' if shares > 1 else ''}"
    )
    if device.type == "cpu":
        reporter.note(memory_needed(model, config, shares))
    return Trainer(
        model=model,
        prepared=prepared,
        state=state,
        reporter=reporter,
        metrics=Metrics(run.metrics, from_update=state.update),
        pace=pace,
        validation_set=validation_set,
        scoring=scoring,
    )


def _validation_set(prepared: Prepared) -> ValidationSet:
    packed, shift = prepared.packed_valid, prepared.parts.shift
    plan = epoch_plan(packed, 0, tokens=prepared.config.batch_tokens, seed=0)
    return ValidationSet(
        prepared.valid,
        [make_batch(packed, rows, shift=shift) for rows in plan],
        prepared.tokenizers,
        prepared.target_language,
        prepared.preprocessing,
    )


def _pace(
    prepared: Prepared,
    d_model: int,
    *,
    state: RunState,
    scoring: float,
    clock: Callable[[], float],
) -> Pace:
    """The pace (updates and learning rates), which the options or ``minutes`` decide."""
    config, packed = prepared.config, prepared.packed
    packing, tokens = prepared.parts.packed(state.packing), config.batch_tokens
    plan = epoch_plan(packed, 0, tokens=tokens, seed=config.seed, packing=packing)
    per_epoch = len(plan) / config.accumulate
    updates = config.updates or max(1, round((config.epochs or 1.0) * per_epoch))
    if config.minutes is not None:
        updates = prepared.start.most_updates(len(packed), per_epoch)
    form = prepared.parts.schedule
    schedule = Schedule(
        updates,
        d_model,
        warmup=config.warmup or Schedule.warmup,
        factor=config.rate_factor or Schedule.factor,
        anneal=config.anneal,
        decay=config.decay or Schedule.decay,
        form=form,
    )
    with prepared.parts.blamed("the schedule", "schedule"):
        for thousandth in range(1000):  # a rate below zero is refused now, not at its update
            schedule.rate(1 + thousandth * updates // 1000)
    if config.minutes is not None:
        return TimedPace(config, state, schedule, scoring=scoring, clock=clock)
    if updates < state.update:
        raise InputError(
            f"{config.run}: the run has {counted(state.update, 'update')}, and the options say"
            f" {updates:,}: give more, or another directory"
        )
    before, state.updates = state.updates, updates
    return SteadyPace(schedule, config.validations, extended=0 < before < updates)


def _length(config: TrainConfig, updates: int) -> str:
    if config.minutes is not None:
        return f"as many updates as {config.minutes:g} minutes allow"
    return counted(updates, "update")
