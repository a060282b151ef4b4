"""Loads a bundle as a CTranslate2 engine, and converts the model at the first load.

Engine ``ctranslate2`` keeps the converted model in the bundle, or in a temporary directory if the
bundle is read-only. Engine ``auto`` keeps it in the user's cache, where nobody else can put a
model. Its name, QUANTIZATION-HASH, depends on the loaded bundle, so that changed weights get a new
conversion. A manifest holds the hashes of the converted files, so that loading finds damage.
"""

import hashlib
import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch

from glassformer.bundle import Bundle
from glassformer.config import LARGE
from glassformer.decoding.engine import Engine
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.support.errors import InputError, UsageError, check_choice
from glassformer.support.files import private_cache, remove_directory, whole_directory
from glassformer.support.hashes import check_hashes, read_manifest, write_manifest
from glassformer.support.tensors import weights
from glassformer.tools.interchange.ctranslate2.engine import CTranslate2Engine, say_once
from glassformer.tools.interchange.ctranslate2.export import (
    QUANTIZATIONS,
    export_ctranslate2,
    token_names,
)
from glassformer.tools.interchange.ctranslate2.package import import_ctranslate2
from glassformer.tools.interchange.ctranslate2.workers import FAULTS, Workers
from glassformer.tools.interchange.stock import require_stock

__all__ = ["load_auto", "load_ctranslate2"]

_FORMAT = "3"  # version of the converted directory; part of the hash
_FOLDER = "ctranslate2"
_MOST_THREADS = 4  # for one sentence, whose products are too small for more threads
_MOST_CACHED = 8  # conversions, the last loaded ones, that the cache keeps
_IN_USE = 3600.0  # seconds since the last load in which the cache keeps any conversion


def load_ctranslate2(
    bundle: Bundle,
    directory: Path | None,
    torch_engine: Engine,
    *,
    quantization: str = "float32",
) -> CTranslate2Engine:
    """The engine for the bundle in ``directory``, on the device of the bundle's model.

    If ``directory`` is None, the user's cache keeps the converted model.

    Raises:
        UsageError: this machine or CTranslate2 does not know the quantization or an option of the
            model, or the model has own parts.
        InputError: ctranslate2 is not installed or finds no CUDA device, or a kept conversion is
            damaged.
    """
    ctranslate2 = import_ctranslate2()
    check_choice("quantization", quantization, QUANTIZATIONS)
    require_stock(bundle, "CTranslate2")
    device = next(bundle.model.parameters()).device
    if device.type == "cuda" and not ctranslate2.get_cuda_device_count():
        raise InputError("device cuda: CTranslate2 finds no such device; give device cpu")
    supported = ctranslate2.get_supported_compute_types(device.type, device.index or 0)
    if quantization not in supported:
        raise UsageError(
            f"quantization {quantization!r}: on this machine's {device.type} CTranslate2 computes"
            f" in {', '.join(sorted(supported))}"
        )
    if directory is None:
        model, temporary = _kept_in_cache(bundle, quantization), False
    else:
        model, temporary = _kept_in_bundle(bundle, directory / _FOLDER, quantization)
    threads = _MOST_THREADS if bundle.model.config.d_model >= LARGE else 1
    return CTranslate2Engine(
        Workers(model, device, quantization, temporary=temporary, most_threads=threads),
        token_names(bundle.source_tokenizer),
        token_names(bundle.target_tokenizer),
        Vocabulary.of(bundle.target_tokenizer),
        torch_engine,
        bundle.model.config.extra_length,
    )


def load_auto(bundle: Bundle, _: Path, torch_engine: Engine, *, quantization: str) -> Engine:
    """The engine of a converted model in the user's cache, or else ``torch_engine``.

    If CTranslate2 is installed but fails, a line on standard error says why torch translates. A
    quantization that torch lacks raises the errors of :func:`load_ctranslate2` instead.
    """
    load = partial(load_ctranslate2, bundle, None, torch_engine, quantization=quantization)
    if quantization != "float32":
        return load()
    if find_spec("ctranslate2") is None:
        return torch_engine
    try:
        return replace(load(), optional=True)
    except OSError as error:
        say_once(f"{error.filename}: {error.strerror}: name another directory in XDG_CACHE_HOME")
    except (MemoryError, *FAULTS) as error:
        say_once(str(error) or "memory ran out")
    return torch_engine


def _kept_in_bundle(bundle: Bundle, folder: Path, quantization: str) -> tuple[Path, bool]:
    """The directory of the converted model, and whether it is temporary."""
    converted = folder / _name(bundle, quantization)
    try:
        if not converted.exists() and folder.is_symlink():  # a link leads out of the bundle
            raise NotADirectoryError(f"{folder} is a link")
        folder.mkdir(exist_ok=True)
        _convert(bundle, converted, quantization)
    except OSError:  # the bundle belongs to another user, or its disk is read-only
        temporary = Path(tempfile.mkdtemp(prefix="glassformer-"))
        try:
            export_ctranslate2(bundle, temporary, quantization=quantization)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return temporary, True
    for outdated in folder.glob(f"{quantization}-*"):  # models of earlier weights
        if outdated != converted:
            shutil.rmtree(outdated, ignore_errors=True)
    return converted, False


def _kept_in_cache(bundle: Bundle, quantization: str) -> Path:
    """The directory of the converted model; removes the conversions that nobody loads any more."""
    folder = private_cache(_FOLDER)
    converted = folder / _name(bundle, quantization)
    _convert(bundle, converted, quantization)
    with suppress(OSError):  # a read-only cache, or another process removes models too
        os.utime(converted)
        ages = {path: time.time() - path.lstat().st_mtime for path in folder.iterdir()}
        for path in sorted(ages, key=ages.__getitem__)[_MOST_CACHED:]:
            if ages[path] > _IN_USE:
                remove_directory(path)
    return converted


def _convert(bundle: Bundle, converted: Path, quantization: str) -> None:
    """Convert the model into ``converted``; InputError if a damaged conversion stands there."""
    if converted.exists():
        _require_whole(converted)
        return
    try:
        with whole_directory(converted) as model:
            export_ctranslate2(bundle, model, quantization=quantization)
            write_manifest(model)
    except OSError:
        if not converted.exists():  # otherwise another process was quicker
            raise


def _require_whole(converted: Path) -> None:
    """Raise InputError if a file of a kept conversion is missing or changed."""
    try:
        hashes = read_manifest(converted)
        check_hashes(converted, {"model.bin", *hashes}, hashes, remedy="delete it")
    except InputError as error:
        raise InputError(
            f"{converted}: this conversion for CTranslate2 is damaged: delete the directory, which"
            " the next load makes anew"
        ) from error


def _name(bundle: Bundle, quantization: str) -> str:
    """The name of a conversion, with the hash of the model's settings, weights and subwords."""
    subwords = [tokenizer.with_prefix(()).fingerprint for tokenizer in bundle.tokenizers]
    settings = f"{_FORMAT} {bundle.model.config.model_dump_json()} {subwords}"
    hashed = hashlib.sha256(settings.encode())
    for weight in weights(bundle.model).values():
        hashed.update(weight.cpu().flatten().view(torch.uint8).numpy().data)
    return f"{quantization}-{hashed.hexdigest()[:32]}"
