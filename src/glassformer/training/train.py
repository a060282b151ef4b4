"""``train(config)``: the whole way from files to a scored bundle; the same call continues it."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.alignment.heads import find_heads
from glassformer.bundle import Bundle, load_weights, save_bundle
from glassformer.data.batches import Batch, make_batch, plan_batches
from glassformer.data.corpus import Pair
from glassformer.data.token_store import pack
from glassformer.decoding.beam import beam_search
from glassformer.decoding.protocols import Vocabulary
from glassformer.devices import device_of
from glassformer.errors import InputError
from glassformer.evaluation import Scores, corpus_scores
from glassformer.model.transformer import Transformer
from glassformer.training.batch_stream import epoch_plan, total_updates
from glassformer.training.checkpoint import RunState, average, checkpoints, load_checkpoint
from glassformer.training.fast.malloc import keep_freed_memory
from glassformer.training.fast.mixed_precision import precision_for
from glassformer.training.length_penalty import best_penalty
from glassformer.training.loop import Trainer
from glassformer.training.optimiser import new_optimiser
from glassformer.training.parallel.ranks import from_torchrun, machine_threads
from glassformer.training.reporting import Metrics, Reporter, TextReporter, duration
from glassformer.training.schedule import Pace, SteadyPace
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.prepare import Prepared, prepare
from glassformer.training.setup.recipe import model_config, useful_updates
from glassformer.training.setup.resume import changed_text
from glassformer.training.time_budget import TimedPace
from glassformer.training.validation import translations

__all__ = ["Run", "train"]

_LONGEST_ALIGNED = 200  # characters of a side of a pair that alignment is learnt from


@dataclass(frozen=True)
class Run:
    """A finished training: its directory, which is the bundle, and its scores."""

    directory: Path
    validation: dict[str, Any]
    test: Scores | None


def train(
    config: TrainConfig, reporter: Reporter | None = None, *, began: float | None = None
) -> Run:
    """Train a translator, or continue where an earlier call with the same options was.

    ``config.minutes`` counts from ``began``, a value of ``time.monotonic()``; None: from this call.
    Errors: :class:`~glassformer.errors.InputError` for data that cannot be used, for a directory
    that holds a run with other options, for a loss that is not finite.
    """
    began = time.monotonic() if began is None else began
    reporter = reporter or TextReporter()
    if not config.plain:
        keep_freed_memory()
    torch.set_num_threads(machine_threads(config.threads))
    try:
        _refuse_early(config)
        prepared = prepare(config)
        for note in prepared.notes:
            reporter.note(note)
        trainer = _trainer(prepared, reporter, lambda: time.monotonic() - began)
        try:
            with from_torchrun(device_of(config.device)) as ranks:
                trainer.run(ranks)
        finally:
            trainer.metrics.close()
        finished = _finish(trainer)
        if isinstance(trainer.pace, TimedPace):
            reporter.note(_time_told(trainer.pace, 60 * (config.minutes or 0)))
        return finished
    finally:
        reporter.close()


def _trainer(
    prepared: Prepared, reporter: Reporter, clock: Callable[[], float] = time.monotonic
) -> Trainer:
    config = prepared.config
    device = device_of(config.device)
    model = _new_model(prepared).to(device)
    optimiser = new_optimiser(model, config.optimiser or "adam")
    state = RunState(data_hash=prepared.data_hash)
    saved = checkpoints(config.run / "checkpoints")
    if saved:
        state = load_checkpoint(saved[-1], model, optimiser)
        if state.data_hash != prepared.data_hash:
            raise changed_text(config, "pairs")
        reporter.note(f"continuing from update {state.update:,}")
    pace = _pace(prepared, model.config.d_model, begun=state.update, clock=clock)
    if not state.precision:  # measured once: another answer on the way would change the weights
        state.precision = _precision(config, device)
    count = sum(weight.numel() for weight in model.parameters())
    reporter.note(
        f"model: {count:,} parameters, {len(prepared.packed):,} pairs,"
        f" {'at most ' if config.minutes else ''}{pace.updates:,} updates,"
        f" {state.precision} on {device}"
    )
    metrics = Metrics(
        config.run / "metrics.jsonl", from_update=state.update, tensorboard=config.tensorboard
    )
    return Trainer(
        model=model,
        optimiser=optimiser,
        prepared=prepared,
        state=state,
        reporter=reporter,
        metrics=metrics,
        pace=pace,
        validation_batches=_validation_batches(prepared, reporter),
    )


def _precision(config: TrainConfig, device: torch.device) -> str:
    if config.plain:
        return "float32"
    return precision_for(device) if config.precision == "auto" else config.precision


def _new_model(prepared: Prepared) -> Transformer:
    source, target = prepared.tokenizers
    torch.manual_seed(prepared.config.seed)
    special = {name: getattr(target, name) for name in ("pad_id", "unk_id", "bos_id", "eos_id")}
    return Transformer(
        model_config(
            prepared.config,
            source_vocab_size=source.vocab_size,
            target_vocab_size=target.vocab_size,
            special_ids=special,
        )
    )


def _pace(prepared: Prepared, d_model: int, *, begun: int, clock: Callable[[], float]) -> Pace:
    """The number of updates and their rates: by the options, or by ``minutes``."""
    config, packed = prepared.config, prepared.packed
    if config.minutes is None:
        return SteadyPace(config, total_updates(packed, config), d_model)
    per_epoch = len(epoch_plan(packed, config, 0)) / config.accumulate
    return TimedPace(
        config,
        most=useful_updates(len(packed), per_epoch),
        d_model=d_model,
        begun=begun,
        # Measured: a beam of 5 takes twice as long as a validation, which has a loss as well; and a
        # little to spare. The validation pairs are searched twice.
        scoring=(2 + config.beam) / 3 * (2 + len(prepared.test) / len(prepared.valid)),
        clock=clock,
    )


def _time_told(pace: TimedPace, total: float) -> str:
    """A line on how much of the time the run took; ``total`` is its time in seconds."""
    note = f"minutes: {duration(pace.spent())} of {duration(total)}"
    if pace.ended_early:
        return f"{note}, for {pace.updates:,} updates are as many as these data want"
    return note


def _finish(trainer: Trainer) -> Run:
    """The mean of the kept checkpoints, scored, as a bundle in the run's directory."""
    prepared, model = trainer.prepared, trainer.model
    updates = trainer.averaged_updates()
    paths = [trainer.checkpoint_directory / f"{update:08d}" for update in updates]
    load_weights(model, average(paths), trainer.checkpoint_directory)
    model.eval()
    beam, languages = prepared.config.beam, prepared.languages
    alpha = best_penalty(
        model,
        prepared.valid,
        prepared.tokenizers,
        beam=beam,
        language=languages[1] if languages else None,
    )
    if beam > 1:
        trainer.reporter.note(f"length penalty {alpha:g}: chosen on the validation pairs")
    validation = _scores(trainer, prepared.valid, alpha)
    about: dict[str, Any] = {
        "data": " and ".join(path.name for path in prepared.config.pairs),
        "pairs": len(prepared.packed),
        "updates": trainer.state.update,
        "trained for": duration(trainer.state.seconds),
        "weights": f"mean of the checkpoints at updates {', '.join(map(str, updates))}",
        "validation": _shown(validation),
    }
    test = _scores(trainer, prepared.test, alpha) if prepared.test else None
    if test is not None:
        about["test"] = _shown(test)
    for name, scores in (("validation", validation), ("test", test)):
        if scores is not None:
            trainer.reporter.note(f"{name}, beam {trainer.config.beam}:\n{scores}")
    bundle = Bundle(model, *prepared.tokenizers, languages, about, length_penalty=alpha)
    alignment = _alignment_heads(bundle, prepared.valid)
    save_bundle(replace(bundle, alignment=alignment), trainer.config.run)
    trainer.reporter.note(f"bundle: {trainer.config.run}")
    return Run(trainer.config.run, validation.as_dict(), test)


def _alignment_heads(bundle: Bundle, pairs: Sequence[Pair]) -> dict[str, Any] | None:
    """The heads that align words best on the pairs; None if the pairs do not tell."""
    bundle.model.to("cpu")
    texts = [(pair.source, pair.target) for pair in pairs]
    short = [sides for sides in texts if max(map(len, sides)) <= _LONGEST_ALIGNED]
    with suppress(InputError):
        return find_heads(bundle, short).heads.as_dict()
    return None


def _scores(trainer: Trainer, pairs: list[Pair], alpha: float) -> Scores:
    tokenizers, languages = trainer.prepared.tokenizers, trainer.prepared.languages
    found = translations(
        trainer.model,
        [pair.source for pair in pairs],
        tokenizers,
        search=partial(
            beam_search,
            beam=trainer.config.beam,
            length_penalty=alpha,
            vocabulary=Vocabulary.of(tokenizers[1]),
        ),
    )
    return corpus_scores(
        found, [pair.target for pair in pairs], language=languages[1] if languages else None
    )


def _shown(scores: Scores) -> str:
    ruler = "" if scores.paper_ruler is None else f", paper ruler {scores.paper_ruler:.2f}"
    return f"BLEU {scores.bleu:.2f} ({scores.signatures['bleu']}), chrF++ {scores.chrf:.2f}{ruler}"


def _validation_batches(prepared: Prepared, reporter: Reporter) -> list[Batch]:
    """The batches of the validation loss; the translations are of all validation pairs."""
    config = prepared.config
    packed = pack(
        prepared.valid,
        *prepared.tokenizers,
        config.run / "data" / "valid",
        max_tokens=config.max_tokens,
    )
    if left_out := len(prepared.valid) - len(packed):
        reporter.note(
            f"validation: {left_out:,} pairs are blank or have more than {config.max_tokens}"
            " subwords on a side, and do not count in its loss"
        )
    plan: list[NDArray[np.int64]] = plan_batches(
        packed.source_lengths,
        packed.target_lengths,
        tokens=config.batch_tokens or 4096,
        seed=0,
        epoch=0,
    )
    return [make_batch(packed, rows) for rows in plan]


def _refuse_early(config: TrainConfig) -> None:
    """Refuse a missing device or an impossible model before the data are read."""
    device_of(config.device)
    sizes: dict[str, object] = {"tying": "none"}
    if not config.preset:  # the data choose the preset, and with it the sizes left open here
        sizes["num_heads"] = (config.d_model and config.num_heads) or 1
    model_config(
        config.model_copy(update=sizes), source_vocab_size=9, target_vocab_size=9, special_ids={}
    )
