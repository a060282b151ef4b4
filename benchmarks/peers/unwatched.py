"""A training and a translation that nobody looks into, with capture's module imported or not."""

import hashlib
import json
import sys
import time
from importlib import import_module
from pathlib import Path

import torch

from benchmarks.peers.measure import job
from glassformer.data.batches import Batch
from glassformer.training.optimiser import Learner, adam, update
from glassformer.translator import Translator

__all__ = ["main"]


def main() -> None:
    """Print seconds and a hash of the answers of both."""
    if job["imported"]:
        import_module("glassformer.inspection.capture")
    assert ("glassformer.inspection.capture" in sys.modules) == job["imported"]
    torch.set_num_threads(job["threads"])
    translator = Translator.load(job["bundle"])
    texts = Path(job["texts"]).read_text("utf-8").splitlines()
    translator.translate(texts[:8], beam=job["beam"])  # caches fill, unmeasured
    begin = time.perf_counter()
    answers = translator.translate(texts, beam=job["beam"])
    translating = time.perf_counter() - begin
    training, weights = _train(translator)
    print(
        json.dumps(
            {
                "translating": translating,
                "training": training,
                "answers": _digest(repr([(one.text, one.score) for one in answers]).encode()),
                "weights": _digest(weights),
            }
        )
    )


def _train(translator: Translator) -> tuple[float, bytes]:
    """Seconds of the updates, and the bytes of all weights after them."""
    model = translator.model.requires_grad_(True).train()
    learner = Learner(model, adam(model))
    torch.manual_seed(1)
    size = model.config.target_vocab_size
    ids = torch.randint(4, min(size, model.config.source_vocab_size), (3, 64, 16))
    batch = Batch(ids[0], ids[1], ids[2], ids[0].numel() + ids[2].numel(), ids[2].numel())
    update(learner, [batch], rate=1e-4)
    begin = time.perf_counter()
    for _ in range(job["updates"]):
        update(learner, [batch], rate=1e-4)
    seconds = time.perf_counter() - begin
    return seconds, b"".join(weight.detach().numpy().tobytes() for weight in model.parameters())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    main()
