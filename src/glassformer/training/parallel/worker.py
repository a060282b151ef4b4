"""What the ranks beside the first one do: compute, sum, update; nothing else.

They read no options and no text. Rank 0 tells them what is trained and gives them its weights.
"""

import os
import sys
import threading
from dataclasses import dataclass

import torch

from glassformer.config import ModelConfig
from glassformer.data.token_store import Packed
from glassformer.devices import device_of
from glassformer.model.transformer import Transformer
from glassformer.training.batch_stream import Reader, seed_update
from glassformer.training.checkpoint import RunState, moments
from glassformer.training.fast.malloc import keep_freed_memory
from glassformer.training.optimiser import Learner, new_optimiser, update
from glassformer.training.parallel.ranks import (
    RankLostError,
    Ranks,
    joined_by_store,
    under_torchrun,
)
from glassformer.training.setup.options import TrainConfig
from glassformer.training.signals import StopSignal

__all__ = ["Task", "assist", "assist_under_torchrun", "main", "replicate"]


@dataclass(frozen=True)
class Task:
    """What rank 0 tells the others: what is trained, how, and from where on."""

    config: TrainConfig
    model: ModelConfig
    state: RunState

    def learner(self, model: Transformer, optimiser: torch.optim.Optimizer) -> Learner:
        keep_freed_memory()
        return Learner(
            model.train(),
            optimiser,
            precision="bf16" if self.state.precision == "bf16" else "float32",
            smoothing=self.config.label_smoothing,
            clip=self.config.clip,
        )


def main() -> None:
    """The process that :func:`~glassformer.training.parallel.ranks.with_workers` starts."""
    store, *numbers = sys.argv[1:]
    rank, size, threads = map(int, numbers)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    print("here", flush=True)
    try:
        with joined_by_store(store, rank, size) as ranks:
            assist(ranks)
    except RankLostError:
        sys.exit(1)  # rank 0 says what there is to say
    except Exception as error:
        reason = str(error).split("\n")[0]
        sys.exit(f"glassformer: error: worker {rank}: {type(error).__name__}: {reason}")


def assist_under_torchrun(name: str) -> int:
    """A rank of ``torchrun`` other than 0, on a device of that name; the exit status."""
    device = device_of(name)
    try:
        with under_torchrun(device) as ranks:
            assist(ranks, device)
    except RankLostError:
        return 1
    return 0


def assist(ranks: Ranks, device: torch.device | str = "cpu") -> None:
    """Update a copy of rank 0's model with it, until it or a signal says that it is done."""
    task: Task = ranks.tell()
    state, config = task.state, task.config
    model = Transformer(task.model).to(device)
    learner = task.learner(model, new_optimiser(model, config.optimiser or "adam"))
    learner.ranks = ranks
    replicate(ranks, learner)
    reader = Reader(state, config, Packed.open(ranks.tell()), ranks.share())
    with StopSignal() as asked:
        while True:
            stop, rate, backwards = ranks.agree(stop=asked.number)
            if stop:
                return
            state.update += 1
            seed_update(config.seed, state.update, ranks.rank)
            update(learner, reader.read(backwards=backwards), rate=rate)


def replicate(ranks: Ranks, learner: Learner) -> None:
    """Give every rank the weights of rank 0, and what its optimiser remembers."""
    optimiser, weights = learner.optimiser, list(learner.model.parameters())
    ranks.copy([weight.detach() for weight in weights])
    learner.refresh()
    if not ranks.tell(bool(optimiser.state)):
        return
    for weight in weights:
        kept, names = optimiser.state[weight], moments(optimiser, weight)
        if not kept:
            kept.update({name: torch.zeros_like(weight) for name in names})
            if "step" in names:
                kept["step"] = torch.zeros((), device=weight.device)
        ranks.copy([kept[name] for name in names])


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is ever written: it returns when the pipe closes
    os._exit(0)
