"""CTranslate2 translators of one model: one for files, one for single sentences."""

import os
import shutil
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from glassformer.support.errors import InputError, UsageError
from glassformer.tools.interchange.ctranslate2.package import import_ctranslate2

__all__ = ["FAULTS", "Workers"]

FAULTS = (RuntimeError, ValueError, LookupError, OverflowError)  # what CTranslate2 raises


class Workers:
    """CTranslate2 translators of the model in ``directory``, each made at its first use.

    A file has as many workers as torch has threads. Each worker has one thread, because threads of
    one sentence would wait for each other. A single sentence has one worker with at most
    ``most_threads`` threads. A ``temporary`` directory is deleted together with the workers. If
    CTranslate2 cannot load the model, InputError names the reason.
    """

    def __init__(
        self,
        directory: Path,
        device: torch.device,
        compute_type: str,
        *,
        temporary: bool = False,
        most_threads: int = 1,
    ) -> None:
        self.directory, self._most_threads = directory, most_threads
        self._process = 0  # the process that made the translators
        self._device = device
        self._compute_type = compute_type
        if temporary:  # when the last reference to the workers ends, or at exit
            weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)

    @cached_property
    def cores(self) -> int:
        """The number of torch's threads in the calling thread, at its first translation."""
        return torch.get_num_threads() if self._device.type == "cpu" else 1

    @cached_property
    def many(self) -> Any:
        """The translator for files: a worker for each core."""
        return self._translator(workers=self.cores, threads=1)

    @cached_property
    def alone(self) -> Any:
        """The translator for a single sentence."""
        threads = min(self._most_threads, self.cores)
        return self.many if threads == 1 else self._translator(workers=1, threads=threads)

    def check_process(self) -> None:
        """Raise UsageError in a fork of the process, where the translators would hang."""
        if self._process not in (0, os.getpid()):
            raise UsageError(
                "engine ctranslate2 has translated before this process was forked: load the"
                " translator in each process, or start processes with 'spawn'"
            )

    @property
    def busy(self) -> bool:
        """Whether the workers for files have batches that wait or are under way."""
        return "many" in vars(self) and self.many.num_active_batches > 0

    def _translator(self, *, workers: int, threads: int) -> Any:
        self._process = os.getpid()
        # OpenMP keeps helper threads for each living thread. Together with the workers' threads,
        # they would outnumber the cores. So a thread that ends here makes the translator.
        try:
            with ThreadPoolExecutor(1) as maker:
                return maker.submit(
                    import_ctranslate2().Translator,
                    os.fspath(self.directory),
                    device=self._device.type,
                    device_index=self._device.index or 0,
                    compute_type=self._compute_type,
                    inter_threads=workers,
                    intra_threads=threads,
                ).result()
        except FAULTS as error:
            raise InputError(
                f"{self.directory}: CTranslate2 cannot load this model ({error}): delete the"
                " directory, which the next load makes anew; or take engine torch"
            ) from error
