"""From a bundle's directory to the CTranslate2 engine: converted once, then read.

The converted model is kept inside the bundle, in ``ctranslate2/QUANTIZATION-HASH``, where the hash
is that of the bundle's files; where the bundle cannot be written to, it lives as long as the
engine, in a temporary directory.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from glassformer.bundle import Bundle, write_atomically
from glassformer.decoding.engine import Engine
from glassformer.decoding.step import Vocabulary
from glassformer.errors import InputError, UsageError, missing_extra
from glassformer.interchange.ctranslate2 import (
    check_quantization,
    export_ctranslate2,
    token_names,
)
from glassformer.interchange.ctranslate2_engine import CTranslate2Engine, Names

__all__ = ["LocalWorkers", "load_ctranslate2"]

_FORMAT = "1"  # of the converted directory: another one is another hash
# Tokens for each symbol that no target may hold. With 16 each is 2.8 nats less probable than the
# one was, which as a rule never stood in a target of the training data and so is improbable itself.
_SPREAD = 16
_FOLDER = "ctranslate2"
_TRIAL_LENGTH = 16  # tokens of the sentence that the number of threads is measured on
_TRIALS = 3
_WORTH = 0.9  # more threads must take at most this share of the time of fewer


def load_ctranslate2(
    bundle: Bundle,
    directory: Path,
    torch_engine: Engine,
    *,
    quantization: str = "float32",
    extra_length: int = 50,
) -> CTranslate2Engine:
    """The engine for the bundle in ``directory``, on the device where the bundle's model is.

    Raises:
        UsageError: this machine or CTranslate2 has no such quantization, or an option of the model
            cannot be held.
        InputError: ctranslate2 is not installed.
    """
    try:
        import ctranslate2
    except ImportError as error:
        raise missing_extra("ctranslate2", "export") from error

    check_quantization(quantization)
    device = next(bundle.model.parameters()).device
    if device.type == "cuda" and not ctranslate2.get_cuda_device_count():
        raise InputError("CTranslate2 finds no CUDA device here: give device cpu")
    possible = ctranslate2.get_supported_compute_types(device.type, device.index or 0)
    if quantization not in possible:
        raise UsageError(
            f"quantization {quantization!r}: on this machine's {device.type} CTranslate2 computes"
            f" in {', '.join(sorted(possible))}"
        )
    names = Names(
        token_names(bundle.source_tokenizer),
        token_names(bundle.target_tokenizer),
        Vocabulary.of(bundle.target_tokenizer),
        _SPREAD,
    )
    model, temporary = _converted(bundle, directory, quantization)
    workers = LocalWorkers(model, device, quantization, temporary=temporary)
    return CTranslate2Engine(workers, names, torch_engine, extra_length)


class LocalWorkers:
    """CTranslate2 translators of the model in ``directory``, each made when it is first used.

    For files there are as many workers as torch has threads, with one thread each: sentences do not
    wait for each other, threads within one do. How many threads one sentence is worth depends on
    the model's size; it is measured once for each converted model and number of cores.
    """

    def __init__(
        self, directory: Path, device: torch.device, compute_type: str, *, temporary: bool = False
    ) -> None:
        self.directory = directory
        self.cores = torch.get_num_threads() if device.type == "cpu" else 1
        self._device = device
        self._compute_type = compute_type
        if temporary:  # it goes when nobody holds the workers, and at the program's end
            weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)

    @cached_property
    def many(self) -> Any:
        """A worker for each core."""
        return self._translator(workers=self.cores, threads=1)

    @cached_property
    def alone(self) -> Any:
        """One worker, with the threads that make one sentence fastest."""
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
    """The least time for one sentence; which one does not matter, its length is fixed."""
    taken = []
    for _ in range(_TRIALS):
        start = time.perf_counter()
        translator.translate_batch(
            [["<unk>"] * _TRIAL_LENGTH],
            beam_size=5,
            min_decoding_length=_TRIAL_LENGTH,
            max_decoding_length=_TRIAL_LENGTH,
        )
        taken.append(time.perf_counter() - start)
    return min(taken)


def _converted(bundle: Bundle, directory: Path, quantization: str) -> tuple[Path, bool]:
    """The directory of the converted model, and whether it is a temporary one."""
    folder = directory / _FOLDER
    kept = folder / f"{quantization}-{_fingerprint(directory)}"
    if kept.is_dir():
        return kept, False
    try:
        folder.mkdir(exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    except OSError:  # the bundle is another's, or on a disk that cannot be written to
        temporary = Path(tempfile.mkdtemp(prefix="glassformer-"))
        export_ctranslate2(bundle, temporary, quantization=quantization, spread=_SPREAD)
        return temporary, True
    try:
        export_ctranslate2(bundle, beside / "model", quantization=quantization, spread=_SPREAD)
        for outdated in folder.glob(f"{quantization}-*"):  # of weights that are no more
            shutil.rmtree(outdated, ignore_errors=True)
        (beside / "model").rename(kept)
    except OSError:
        if not kept.is_dir():  # else another process was quicker
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return kept, False


def _fingerprint(directory: Path) -> str:
    """Of all that the converted model is made from."""
    digest = hashlib.sha256(_FORMAT.encode())
    for path in [
        directory / "config.json",
        directory / "model.safetensors",
        *sorted(directory.glob("*.model")),
    ]:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
