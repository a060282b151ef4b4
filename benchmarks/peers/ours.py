"""Glassformer's update, the same as in ``glassformer train``."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from benchmarks.peers.devices import clock_of
from benchmarks.peers.measure import Arrays, job, run_updates
from glassformer.config import ModelConfig
from glassformer.data.batches import Batch
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST
from glassformer.support.devices import device_of
from glassformer.training.malloc import keep_freed_memory
from glassformer.training.optimiser import Learner, adam_of
from glassformer.training.parallel.ranks import ALONE
from glassformer.training.parallel.shares import Shares
from glassformer.training.setup.machine import chosen_shares

__all__ = ["FORMS", "build", "prepared"]


def build() -> Transformer:
    """The job's model: post-norm as in the paper, with one embedding matrix."""
    torch.manual_seed(job["seed"])
    sizes = dict(job["model"])
    vocab_size = sizes.pop("vocab_size")
    config = ModelConfig(source_vocab_size=vocab_size, target_vocab_size=vocab_size, **sizes)
    return FAST.model(config, FAST).to(device_of(job["device"]))


def padded(model: Transformer) -> Learner:
    """The learner of ``glassformer train``, whose batches are padded."""
    count = 0
    if not job["device"].startswith("cuda"):
        count = chosen_shares(model, FAST, tokens=job["batch_tokens"])
    return Learner(
        model,
        adam_of(list(model.parameters())),
        mixed_precision=FAST.mixed_precision if job["precision"] == "bf16" else None,
        losses=partial(FAST.losses, smoothing=job["smoothing"]),
        clip=job["clip"],
        ranks=replace(ALONE, shares=Shares(count, job["threads"])),
    )


def padded_batch(arrays: Arrays) -> Batch:
    """The arrays as a batch in the host's memory; an update copies it to its device."""
    pad_id = job["model"]["pad_id"]
    words = int((arrays.labels != pad_id).sum())
    return Batch(*map(torch.from_numpy, arrays), arrays.tokens(pad_id), words)


FORMS: dict[str, tuple[Callable[[Transformer], Learner], Callable[[Arrays], Any]]] = {
    "padded": (padded, padded_batch),
}
"""The forms of an update: the learner of a model, and a batch from the job's arrays."""


def prepared() -> tuple[Learner, Callable[[Arrays], Any]]:
    """The learner of the job's form, and the function that makes its batches."""
    torch.set_num_threads(job["threads"])
    keep_freed_memory()
    new_learner, new_batch = FORMS[job.get("form", "padded")]
    learner = new_learner(build().train())
    torch.set_num_threads(learner.ranks.shares.threads)
    return learner, new_batch


def main() -> None:
    learner, new_batch = prepared()

    def update_once(batch: Any, rate: float) -> Any:
        return learner.update([batch], rate=rate).losses[0]

    run_updates(
        new_batch,
        update_once,
        library=f"glassformer, torch {torch.__version__}",
        parameters=sum(weight.numel() for weight in learner.model.parameters()),
        clock=clock_of(job["device"]),
    )


if __name__ == "__main__":
    main()
