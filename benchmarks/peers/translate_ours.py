"""Glassformer's translator from text to text, with either of its engines."""

from collections.abc import Callable, Sequence

import torch

from benchmarks.peers.measure import job
from benchmarks.peers.translating import time_translation
from glassformer.translator import Translator

__all__ = ["load"]


def load() -> Callable[[Sequence[str]], list[str]]:
    """A function from texts to texts, with length penalty 0 as in the other engines."""
    torch.set_num_threads(job["threads"])
    translator = Translator.load(
        job["bundle"], device=job["device"], engine=job["engine"], quantization=job["compute"]
    )

    def translate(texts: Sequence[str]) -> list[str]:
        translations = translator.translate(texts, beam=job["beam"], length_penalty=0.0)
        return [translation.text for translation in translations]

    return translate


if __name__ == "__main__":
    time_translation(load, "texts", library=f"glassformer, {job['engine']}")
