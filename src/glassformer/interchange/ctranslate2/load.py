"""From a bundle's directory to the CTranslate2 engine: converted once, then read.

The converted model is kept inside the bundle, in ``ctranslate2/QUANTIZATION-HASH``, where the hash
is that of the bundle's files; where the bundle cannot be written to, it lives as long as the
engine, in a temporary directory.
"""

import hashlib
import shutil
import tempfile
from pathlib import Path

from glassformer.bundle import Bundle
from glassformer.config import EXTRA_LENGTH
from glassformer.decoding.engine import Engine
from glassformer.decoding.protocols import Vocabulary
from glassformer.errors import InputError, UsageError
from glassformer.interchange.ctranslate2.engine import CTranslate2Engine
from glassformer.interchange.ctranslate2.export import (
    check_quantization,
    export_ctranslate2,
    token_names,
)
from glassformer.interchange.ctranslate2.package import import_ctranslate2
from glassformer.interchange.ctranslate2.threads import Workers

__all__ = ["load_ctranslate2"]

_FORMAT = "1"  # of the converted directory: another one is another hash
_FOLDER = "ctranslate2"


def load_ctranslate2(
    bundle: Bundle,
    directory: Path,
    torch_engine: Engine,
    *,
    quantization: str = "float32",
    extra_length: int = EXTRA_LENGTH,
) -> CTranslate2Engine:
    """The engine for the bundle in ``directory``, on the device where the bundle's model is.

    Raises:
        UsageError: this machine or CTranslate2 has no such quantization, or an option of the model
            cannot be held.
        InputError: ctranslate2 is not installed.
    """
    ctranslate2 = import_ctranslate2()
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
    source_names = token_names(bundle.source_tokenizer)
    target_names = token_names(bundle.target_tokenizer)
    model, temporary = _converted(bundle, directory, quantization)
    return CTranslate2Engine(
        Workers(model, device, quantization, temporary=temporary),
        source_names,
        target_names,
        Vocabulary.of(bundle.target_tokenizer),
        torch_engine,
        extra_length,
    )


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
        export_ctranslate2(bundle, temporary, quantization=quantization)
        return temporary, True
    try:
        export_ctranslate2(bundle, beside / "model", quantization=quantization)
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
