"""The training loop of ranks 1 to N-1, which get settings and weights from rank 0 and read no text.

Rank 0 gives :func:`settings_of_rank_0`. Each other rank calls :func:`train_rank`.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from glassformer.config import ModelConfig
from glassformer.data.token_store import Packed
from glassformer.parts import Parts, check_own
from glassformer.support.devices import device_of
from glassformer.support.errors import InputError
from glassformer.support.threads import torch_threads
from glassformer.training.batch_stream import BatchStream, seed_update
from glassformer.training.checkpoint import RunState
from glassformer.training.malloc import keep_freed_memory
from glassformer.training.parallel.ranks import RankLostError, Ranks, from_torchrun, machine_threads
from glassformer.training.setup.learner import new_learner
from glassformer.training.setup.options import LearningOptions, MachineOptions
from glassformer.training.signals import StopSignal

if TYPE_CHECKING:
    from glassformer.training.loop import Trainer

__all__ = ["settings_of_rank_0", "train_rank"]


def settings_of_rank_0(trainer: "Trainer") -> dict[str, Any]:
    """The settings of the other ranks. A rank must see the files that the settings name."""
    config, packed = trainer.config, trainer.prepared.packed
    return {
        "options": config.model_dump(mode="json", include=set(LearningOptions.model_fields)),
        "seed": config.seed,
        "model": trainer.model.config.model_dump(mode="json"),
        "state": asdict(trainer.state),
        "checkpoints": str(trainer.checkpoints.resolve()),
        "packed": str(packed.directory.resolve()),
    }


def train_rank(machine: MachineOptions, parts: Parts) -> None:
    """Train beside rank 0 until rank 0 ends or a signal arrives.

    ``machine`` gives the device and the threads; rank 0 sends all other options.
    """
    device, threads = device_of(machine.device), machine_threads(machine.threads)
    if parts.keep_memory:
        keep_freed_memory()
    try:
        with from_torchrun(device) as ranks, torch_threads(ranks.threads(threads)):
            _train(ranks, device, parts)
    except RankLostError as error:
        raise InputError(f"{error}; the same command continues from the last checkpoint") from error


def _train(ranks: Ranks, device: torch.device, parts: Parts) -> None:
    settings = ranks.settings
    options, state = LearningOptions(**settings["options"]), RunState(**settings["state"])
    check_own(state.parts, parts.own, "rank 0 trains with")
    model = parts.build(ModelConfig(**settings["model"])).to(device)
    checkpoints = Path(settings["checkpoints"])
    learner = new_learner(
        model, parts, options=options, state=state, checkpoints=checkpoints, ranks=ranks
    )
    seed, packed = settings["seed"], _packed(settings["packed"])
    stream = BatchStream(state, options, packed, ranks.share(), parts, seed=seed)
    with StopSignal() as asked:
        while True:
            stop, rate, backwards = ranks.all_reduce_max(asked.number, 0.0, 0.0)
            if stop:
                return
            state.update += 1
            seed_update(seed, state.update, ranks.rank)
            learner.update(stream.next_batches(backwards=bool(backwards)), rate=rate)


def _packed(directory: str) -> Packed:
    try:
        return Packed.open(Path(directory))
    except (InputError, OSError) as error:
        raise InputError(
            f"{directory}: this machine cannot read the packed corpus of rank 0 ({error}): all"
            " machines need the run's directory at the same path"
        ) from error
