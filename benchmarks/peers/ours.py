"""Glassformer's update, the same as in ``glassformer train``."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch

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

__all__ = ["build"]


def build() -> Transformer:
    """The job's model: post-norm as in the paper, with one embedding matrix."""
    torch.manual_seed(job["seed"])
    sizes = dict(job["model"])
    vocab_size = sizes.pop("vocab_size")
    config = ModelConfig(source_vocab_size=vocab_size, target_vocab_size=vocab_size, **sizes)
    return FAST.model(config, FAST).to(device_of(job["device"]))


def main() -> None:
    torch.set_num_threads(job["threads"])
    keep_freed_memory()
    model = build().train()
    on_cuda = job["device"].startswith("cuda")
    count = 0 if on_cuda else chosen_shares(model, FAST, tokens=job["batch_tokens"])
    learner = Learner(
        model,
        adam_of(list(model.parameters())),
        mixed_precision=FAST.mixed_precision if job["precision"] == "bf16" else None,
        losses=partial(FAST.losses, smoothing=job["smoothing"]),
        clip=job["clip"],
        ranks=replace(ALONE, shares=Shares(count, job["threads"])),
    )
    pad_id = model.config.pad_id

    def prepare(arrays: Arrays) -> Batch:
        tensors = [torch.from_numpy(part) for part in arrays]
        words = int((arrays.labels != pad_id).sum())
        return Batch(*tensors, arrays.tokens(pad_id), words)

    def update_once(batch: Batch, rate: float) -> Any:
        return learner.update([batch], rate=rate).losses[0]

    torch.set_num_threads(learner.ranks.shares.threads)
    run_updates(
        prepare,
        update_once,
        library=f"glassformer, torch {torch.__version__}",
        parameters=sum(weight.numel() for weight in model.parameters()),
        wait=torch.cuda.synchronize if on_cuda else lambda: None,
        device_peak=torch.cuda.max_memory_allocated if on_cuda else None,
    )


if __name__ == "__main__":
    main()
