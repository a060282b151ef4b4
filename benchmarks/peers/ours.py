"""Glassformer's update, the same as in ``glassformer train``."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from benchmarks.peers.devices import clock_of
from benchmarks.peers.measure import Arrays, batches, job, time_updates
from glassformer.config import ModelConfig
from glassformer.data.batches import Batch
from glassformer.data.token_store import Sentences
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, Packing
from glassformer.support.devices import device_of
from glassformer.training.fast.packed_losses import PackedBatch
from glassformer.training.malloc import keep_freed_memory
from glassformer.training.optimiser import Learner, MixedPrecision, adam_of
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


def padded() -> tuple[Learner, list[Batch]]:
    """The learner of ``glassformer train`` and its batches, which are padded."""
    model, pad_id = build().train(), job["model"]["pad_id"]
    number = 0
    if not job["device"].startswith("cuda"):
        number = chosen_shares(model, FAST, tokens=job["batch_tokens"])
    learner = _learner(model, FAST.losses, _copied(), Shares(number, job["threads"]))
    ready = [
        Batch(
            *map(torch.from_numpy, arrays),
            tokens=arrays.tokens(pad_id),
            target_tokens=int((arrays.labels != pad_id).sum()),
        )
        for arrays in batches()
    ]
    return learner, ready


def packed(*, graph: bool = False, compiled: bool = False) -> tuple[Learner, list[PackedBatch]]:
    """The learner of ``--batches packed``, and batches of the same sentences in random order."""
    sentences = _sentences(list(batches()))
    packing = Packing.of(sentences, job["batch_tokens"])
    copied = partial(_with_compiled_blocks, _copied()) if compiled else _copied()
    learner = _learner(build().train(), packing.losses, copied)
    if graph:
        learner.replayed = packing.replay(learner.backward, learner.model.parameters())
    lengths, ready = (sentences.source.lengths, sentences.target.lengths), list[PackedBatch]()
    for epoch in count():
        for rows in packing.plan(*lengths, seed=1, epoch=epoch):
            ready.append(packing.batch(sentences, rows))
            if len(ready) == job["warm"] + job["updates"]:
                return learner, ready
    raise AssertionError("the epochs have no end")


def _with_compiled_blocks(copied: MixedPrecision | None, model: Transformer) -> Any:
    working, renew = copied(model) if copied else (model, lambda: None)
    for block in (*working.encoder.blocks, *working.decoder.blocks):
        block.compile(fullgraph=True, dynamic=False, backend=job.get("compiler", "inductor"))
    return working, renew


def _copied() -> MixedPrecision | None:
    return FAST.mixed_precision if job["precision"] == "bf16" else None


def _learner(
    model: Transformer, losses: Any, copied: MixedPrecision | None, shares: Shares | None = None
) -> Learner:
    return Learner(
        model,
        adam_of(list(model.parameters())),
        mixed_precision=copied,
        losses=partial(losses, smoothing=job["smoothing"]),
        clip=job["clip"],
        ranks=replace(ALONE, shares=shares or Shares(0, job["threads"])),
    )


def _sentences(arrays: Sequence[Arrays]) -> Any:
    """All sentences of the batches, as a packed corpus of which the batches' symbols are known."""
    names = ("pad", "bos", "eos")
    symbols = {name: job["model"][f"{name}_id"] for name in names}
    sides = []
    for name in ("source", "labels"):
        rows = [row[row != symbols["pad"]][:-1] for each in arrays for row in getattr(each, name)]
        offsets = np.cumsum([0, *map(len, rows)])
        sides.append(Sentences(np.concatenate(rows), offsets))
    meta = SimpleNamespace(symbols={"source": symbols, "target": symbols})
    return SimpleNamespace(source=sides[0], target=sides[1], meta=meta)


FORMS: dict[str, Callable[[], tuple[Learner, Sequence[Batch]]]] = {
    "padded": padded,
    "packed": packed,
    "packed, graph": partial(packed, graph=True),
    "packed, compiled blocks, graph": partial(packed, graph=True, compiled=True),
}
"""The forms of an update: the learner, and its batches in the host's memory."""


def prepared() -> tuple[Learner, Sequence[Batch]]:
    """The learner and the batches of the job's form."""
    torch.set_num_threads(job["threads"])
    keep_freed_memory()
    learner, ready = FORMS[job.get("form", "padded")]()
    torch.set_num_threads(learner.ranks.shares.threads)
    return learner, ready


def main() -> None:
    learner, ready = prepared()

    def update_once(batch: Batch, rate: float) -> Any:
        return learner.update([batch], rate=rate).losses[0]

    time_updates(
        [(batch, batch.tokens) for batch in ready],
        update_once,
        library=f"glassformer, torch {torch.__version__}",
        parameters=sum(weight.numel() for weight in learner.model.parameters()),
        clock=clock_of(job["device"]),
    )


if __name__ == "__main__":
    main()
