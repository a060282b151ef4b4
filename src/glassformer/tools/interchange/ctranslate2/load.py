"""Loads a bundle as a CTranslate2 engine, and converts the model at the first load.

The converted model stays in the bundle, in ``ctranslate2/QUANTIZATION-HASH``. HASH depends on the
bundle's files, so that changed weights get a new conversion. A manifest holds the hashes of the
converted files, so that loading finds damage. If the bundle is read-only, a temporary directory
holds the model as long as the engine lives.
"""

import shutil
import tempfile
from pathlib import Path

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Engine
from glassformer.decoding.protocols import Vocabulary
from glassformer.support.errors import InputError, UsageError, check_choice
from glassformer.support.files import flush_directory
from glassformer.support.hashes import (
    check_hashes,
    read_manifest,
    sha256,
    sha256_of_all,
    write_manifest,
)
from glassformer.tools.interchange.ctranslate2.engine import CTranslate2Engine
from glassformer.tools.interchange.ctranslate2.export import (
    QUANTIZATIONS,
    export_ctranslate2,
    token_names,
)
from glassformer.tools.interchange.ctranslate2.package import import_ctranslate2
from glassformer.tools.interchange.ctranslate2.workers import Workers
from glassformer.tools.interchange.stock import require_stock

__all__ = ["load_ctranslate2"]

_FORMAT = "2"  # version of the converted directory; part of the hash
_FOLDER = "ctranslate2"


def load_ctranslate2(
    bundle: Bundle,
    directory: Path,
    torch_engine: Engine,
    *,
    quantization: str = "float32",
) -> CTranslate2Engine:
    """The engine for the bundle in ``directory``, on the device of the bundle's model.

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
    model, temporary = _converted(bundle, directory, quantization)
    return CTranslate2Engine(
        Workers(model, device, quantization, temporary=temporary),
        token_names(bundle.source_tokenizer),
        token_names(bundle.target_tokenizer),
        Vocabulary.of(bundle.target_tokenizer),
        torch_engine,
        bundle.model.config.extra_length,
    )


def _converted(bundle: Bundle, directory: Path, quantization: str) -> tuple[Path, bool]:
    """The directory of the converted model, and whether it is temporary."""
    folder = directory / _FOLDER
    converted = folder / f"{quantization}-{_fingerprint(directory)}"
    if converted.exists():
        _require_whole(converted)
        return converted, False
    try:
        if folder.is_symlink():  # a link leads out of the bundle
            raise NotADirectoryError(f"{folder} is a link")
        folder.mkdir(exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    except OSError:  # the bundle belongs to another user, or its disk is read-only
        temporary = Path(tempfile.mkdtemp(prefix="glassformer-"))
        try:
            export_ctranslate2(bundle, temporary, quantization=quantization)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return temporary, True
    try:
        export_ctranslate2(bundle, unfinished / "model", quantization=quantization)
        write_manifest(unfinished / "model")
        flush_directory(unfinished / "model")
        for outdated in folder.glob(f"{quantization}-*"):  # models of earlier weights
            if outdated != converted:
                shutil.rmtree(outdated, ignore_errors=True)
        (unfinished / "model").rename(converted)
    except OSError:
        if not converted.exists():  # otherwise another process was quicker
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return converted, False


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


def _fingerprint(directory: Path) -> str:
    """The hash of the bundle's config, weights and tokenizers."""
    files = [directory / "config.json", directory / "model.safetensors"]
    files += sorted(directory.glob("*.model"))
    return sha256((_FORMAT + sha256_of_all(files)).encode())[:16]
