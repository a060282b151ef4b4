"""The training loop of ranks 1 to N-1, which read no text: rank 0 sends them settings and weights.

Rank 0 calls :func:`broadcast_run`, each of the others :func:`train_rank`.
"""

from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

from glassformer.config import ModelConfig
from glassformer.data.token_store import Packed
from glassformer.devices import device_of
from glassformer.errors import InputError
from glassformer.parts import Parts, check_own
from glassformer.threads import torch_threads
from glassformer.training.batch_stream import BatchStream, seed_update
from glassformer.training.checkpoint import RunState, moments
from glassformer.training.malloc import keep_freed_memory
from glassformer.training.optimiser import Learner, new_optimiser
from glassformer.training.parallel.ranks import RankLostError, Ranks, from_torchrun, machine_threads
from glassformer.training.setup.options import LearningOptions, MachineOptions
from glassformer.training.signals import StopSignal

__all__ = ["broadcast_run", "train_rank"]


def broadcast_run(
    learner: Learner, options: LearningOptions, *, seed: int, state: RunState, packed: Packed
) -> None:
    """Send the other ranks their settings, the weights and the optimiser's moments.

    They open the packed corpus themselves: all ranks must see the same files.
    """
    if learner.ranks.size == 1:
        return
    settings = {
        "options": options.model_dump(mode="json", include=set(LearningOptions.model_fields)),
        "seed": seed,
        "model": learner.model.config.model_dump(mode="json"),
        "state": asdict(state),
        "packed": str(packed.directory.resolve()),
    }
    learner.ranks.broadcast_json(settings)
    _replicate(learner, begun=state.update > 0)


def train_rank(machine: MachineOptions, parts: Parts) -> None:
    """Train beside rank 0 until it ends, or a signal arrives.

    Only the device and the threads count: rank 0 sends its own options.
    """
    device, threads = device_of(machine.device), machine_threads(machine.threads)
    keep_freed_memory()
    try:
        with from_torchrun(device) as ranks, torch_threads(ranks.threads(threads)):
            _train(ranks, device, parts)
    except RankLostError as error:
        raise InputError(f"{error}; the same command continues from the last checkpoint") from error


def _train(ranks: Ranks, device: torch.device, parts: Parts) -> None:
    settings = ranks.broadcast_json()
    options, state = LearningOptions(**settings["options"]), RunState(**settings["state"])
    check_own(state.parts, parts.own, "rank 0 trains with")
    model = parts.model(ModelConfig(**settings["model"]), parts).to(device)
    optimiser = new_optimiser(model, options.optimiser or "adam", parts.adam)
    learner = Learner(
        model.train(),
        optimiser,
        losses=partial(parts.losses, smoothing=options.label_smoothing),
        precision=state.precision,
        clip=options.clip,
        ranks=ranks,
    )
    _replicate(learner, begun=state.update > 0)
    seed, packed = settings["seed"], _packed(settings["packed"])
    stream = BatchStream(state, options, packed, ranks.share(), parts.shift, seed=seed)
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


def _replicate(learner: Learner, *, begun: bool) -> None:
    """Give every rank the weights of rank 0 and, in a begun run, its optimiser's moments."""
    optimiser, weights = learner.optimiser, list(learner.model.parameters())
    learner.ranks.broadcast([weight.detach() for weight in weights])
    learner.refresh()
    for weight in weights if begun else ():
        kept, names = optimiser.state[weight], moments(optimiser, weight)
        if not kept:
            kept.update({name: torch.zeros_like(weight) for name in names})
            if "step" in names:
                kept["step"] = torch.zeros((), device=weight.device)
        learner.ranks.broadcast([kept[name] for name in names])
