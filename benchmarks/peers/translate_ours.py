"""Glassformer's translator, text in to text out, with either of its engines."""

from collections.abc import Callable, Sequence

import torch

from benchmarks.peers.measure import job
from benchmarks.peers.translating import time_translation
from glassformer.translator import Translator

__all__ = ["load"]


def load() -> Callable[[Sequence[str]], list[str]]:
    """A function from texts to texts; the length penalty is 0, as in the other engines, where the
    job does not say another (None: the bundle's). No scores: the other engines give none either."""
    penalty = job.get("length_penalty", 0.0)
    torch.set_num_threads(job["threads"])
    translator = Translator.load(
        job["bundle"],
        device=job["device"],
        engine=job["engine"],
        quantization=job["compute"],
        shortlist=job.get("shortlist", False),
    )

    def translate(texts: Sequence[str]) -> list[str]:
        [found] = translator.translate_windows(
            [texts], beam=job["beam"], length_penalty=penalty, scores=False
        )
        return [one.text for one in found]

    return translate


if __name__ == "__main__":
    time_translation(load, "texts", library=f"glassformer, {job['engine']}")
