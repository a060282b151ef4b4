"""CTranslate2 alone, from subwords to subwords, with a given number of workers and threads each."""

from collections.abc import Callable, Sequence

import ctranslate2

from benchmarks.peers.measure import job
from benchmarks.peers.translating import time_translation

__all__ = ["load"]

_NO_PENALTY = 1e-12  # at 0 the engine ends its search early, with other translations


def load() -> Callable[[Sequence[list[str]]], list[list[str]]]:
    """A function from subwords to subwords; long sentences first, batches of the job's size."""
    translator = ctranslate2.Translator(
        job["exported"]["ctranslate2"],
        device=job["device"],
        compute_type=job["compute"],
        inter_threads=job["workers"],
        intra_threads=max(1, job["threads"] // job["workers"]),
    )

    def translate(sources: Sequence[list[str]]) -> list[list[str]]:
        results = translator.translate_batch(
            list(sources),
            beam_size=job["beam"],
            length_penalty=_NO_PENALTY,
            max_batch_size=job["batch"],
            max_decoding_length=max(map(len, sources)) + job["extra"],
        )
        return [result.hypotheses[0] for result in results]

    return translate


if __name__ == "__main__":
    time_translation(load, "subwords", library=f"ctranslate2 {ctranslate2.__version__}")
