"""CTranslate2 translators of one model, in the setting that is fastest on this machine."""

import json
import os
import shutil
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import torch

from glassformer.files import write_atomically
from glassformer.interchange.ctranslate2.package import import_ctranslate2

__all__ = ["Workers"]

_TRIAL_LENGTH = 16  # tokens of the sentence that the number of threads is measured on
_IN_A_ROW = 2  # sentences of a trial: the first wakes the threads
_FEWEST, _MOST, _LONG = 3, 9, 0.3  # trials; no more than the fewest after so many seconds
_WORTH = 0.95  # more threads must take at most this share of the time of fewer
_FRESH = 3600  # seconds for which an answer holds

_WITH_HELPERS: "weakref.WeakSet[Workers]" = weakref.WeakSet()  # one sentence has more threads


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
        """For one sentence while nothing else is to do: the threads that make it fastest.

        Of all workers of the program only the first have more than one thread here: the threads of
        two would be more than the cores.
        """
        if _WITH_HELPERS or (threads := self._best_threads()) == 1:
            return self.many
        _WITH_HELPERS.add(self)
        return self._translator(workers=1, threads=threads)

    def _translator(self, *, workers: int, threads: int) -> Any:
        # In a thread that ends. Helpers of the thread that loads would stay, and be more than the
        # cores with those of the worker.
        with ThreadPoolExecutor(1) as passing:
            return passing.submit(
                import_ctranslate2().Translator,
                os.fspath(self.directory),
                device=self._device.type,
                device_index=self._device.index or 0,
                compute_type=self._compute_type,
                inter_threads=workers,
                intra_threads=threads,
            ).result()

    def _best_threads(self) -> int:
        if self.cores == 1:
            return 1
        path = self.directory / "threads.json"
        known: dict[str, int] = {}
        with suppress(OSError, ValueError, TypeError):
            if time.time() - path.stat().st_mtime < _FRESH:
                known = dict(json.loads(path.read_bytes()))
        key = str(self.cores)
        if known.get(key) not in range(1, self.cores + 1):
            known[key] = self._measured_threads()
            with suppress(OSError):
                write_atomically(path, json.dumps(known).encode())
        return known[key]

    def _measured_threads(self) -> int:
        # Each number beside one thread: of two that have helpers, those would be too many.
        single = self._translator(workers=1, threads=1)
        best, least = 1, 1.0
        threads = 2
        while threads <= self.cores:
            share = _share(self._translator(workers=1, threads=threads), single)
            if share < _WORTH * least:
                best, least = threads, share
            threads *= 2
        return best


def _share(one: Any, other: Any) -> float:
    """Of the other's time for a trial, what the one usually takes; in turn, against the noise."""
    for translator in (one, other):
        _seconds(translator)  # the first also fetches the weights
    shares: list[float] = []
    start = time.perf_counter()
    while len(shares) < _FEWEST or (len(shares) < _MOST and time.perf_counter() - start < _LONG):
        shares.append(_seconds(one) / _seconds(other))
    return median(shares)


def _seconds(translator: Any) -> float:
    """What a trial takes; which sentence it is does not matter, its length is fixed."""
    start = time.perf_counter()
    for _ in range(_IN_A_ROW):
        _translate_one(translator)
    return time.perf_counter() - start


def _translate_one(translator: Any) -> None:
    translator.translate_batch(
        [["<unk>"] * _TRIAL_LENGTH],
        beam_size=5,
        min_decoding_length=_TRIAL_LENGTH,
        max_decoding_length=_TRIAL_LENGTH,
    )
