"""Glassformer's searches from ids to ids, without a text engine around them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.peers.measure import job
from benchmarks.peers.translating import time_translation
from glassformer.bundle import load_bundle
from glassformer.decoding.engine import Job, SearchOptions
from glassformer.parts import FAST, in_bfloat16
from glassformer.support.devices import device_of
from glassformer.text_engine import torch_engine

__all__ = ["load"]


def load() -> Callable[[Sequence[list[int]]], list[list[int]]]:
    """A function from ids to ids, with length penalty 0 as in the other engines."""
    torch.set_num_threads(job["threads"])
    bundle = load_bundle(Path(job["bundle"]), device=device_of(job["device"]))
    parts = in_bfloat16(FAST) if job["compute"] == "bfloat16" else FAST
    engine = torch_engine(bundle.model, (bundle.source_tokenizer, bundle.target_tokenizer), parts)
    longer = job["extra"] + 1  # Hugging Face counts the end symbol of a source too
    engine = replace(engine, settings=replace(engine.settings, extra_length=longer))
    options = SearchOptions(beam=job["beam"], length_penalty=0.0)

    def translate(sources: Sequence[list[int]]) -> list[list[int]]:
        return [list(best.tokens) for best, *_ in engine.decode(Job(sources), options)]

    return translate


if __name__ == "__main__":
    time_translation(load, "ids", library=f"glassformer, torch {torch.__version__}")
