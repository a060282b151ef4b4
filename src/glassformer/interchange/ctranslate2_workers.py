"""CTranslate2 translators of one model, in the setting that is fastest on this machine."""

import json
import os
import shutil
import time
import weakref
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import torch

from glassformer.bundle import write_atomically

__all__ = ["Workers"]

_TRIAL_LENGTH = 16  # tokens of the sentence that the number of threads is measured on
_FEWEST, _MOST, _LONG = 3, 9, 0.2  # trials; no more than the fewest after so many seconds
_WORTH = 0.9  # more threads must take at most this share of the time of fewer
_FRESH = 3600  # seconds for which an answer holds


class Workers:
    """CTranslate2 translators of the model in ``directory``, each made when it is first used.

    For files there are as many workers as torch has threads, with one thread each: sentences do not
    wait for each other, threads within one do. How many threads one sentence is worth depends on
    the model's size and on what else runs here; it is measured once an hour for each converted
    model and number of cores.

    ``temporary``: the directory goes with the workers.
    """

    def __init__(
        self, directory: Path, device: torch.device, compute_type: str, *, temporary: bool = False
    ) -> None:
        self.directory = directory
        self._device = device
        self._compute_type = compute_type
        if temporary:  # when nobody holds the workers any more, or at the program's end
            weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)

    @cached_property
    def cores(self) -> int:
        """What the thread that first translates may use; who loads may be told to use less."""
        return torch.get_num_threads() if self._device.type == "cpu" else 1

    @cached_property
    def many(self) -> Any:
        """For files: a worker for each core."""
        return self._translator(workers=self.cores, threads=1)

    @cached_property
    def alone(self) -> Any:
        """For one sentence while nothing else is to do: the threads that make it fastest."""
        threads = self._best_threads()
        return self.many if threads == 1 else self._translator(workers=1, threads=threads)

    def _translator(self, *, workers: int, threads: int) -> Any:
        import ctranslate2

        return ctranslate2.Translator(
            os.fspath(self.directory),
            device=self._device.type,
            device_index=self._device.index or 0,
            compute_type=self._compute_type,
            inter_threads=workers,
            intra_threads=threads,
        )

    def _best_threads(self) -> int:
        if self.cores == 1:
            return 1
        path = self.directory / "threads.json"
        known: dict[str, int] = {}
        with suppress(OSError, ValueError):
            if time.time() - path.stat().st_mtime < _FRESH:
                known = json.loads(path.read_bytes())
        key = str(self.cores)
        if known.get(key) not in range(1, self.cores + 1):
            known[key] = self._measured_threads()
            with suppress(OSError):
                write_atomically(path, json.dumps(known).encode())
        return known[key]

    def _measured_threads(self) -> int:
        best, least = 1, float("inf")
        threads = 1
        while threads <= self.cores:
            seconds = _seconds(self._translator(workers=1, threads=threads))
            if seconds < _WORTH * least:
                best, least = threads, seconds
            threads *= 2
        return best


def _seconds(translator: Any) -> float:
    """The usual time for one sentence; which one does not matter, its length is fixed."""
    _translate_one(translator)  # the first also fetches the weights
    taken: list[float] = []
    while len(taken) < _FEWEST or (len(taken) < _MOST and sum(taken) < _LONG):
        start = time.perf_counter()
        _translate_one(translator)
        taken.append(time.perf_counter() - start)
    return median(taken)


def _translate_one(translator: Any) -> None:
    translator.translate_batch(
        [["<unk>"] * _TRIAL_LENGTH],
        beam_size=5,
        min_decoding_length=_TRIAL_LENGTH,
        max_decoding_length=_TRIAL_LENGTH,
    )
