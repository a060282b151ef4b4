"""``glassformer export``: writes a translator for another program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import Field

from glassformer.config import Options

__all__ = ["OPTIONS", "ExportOptions", "run"]


class ExportOptions(Options):
    """Write the translator in BUNDLE for another program, as the new OUT."""

    bundle: Path = Field(title="BUNDLE")
    """Directory of a trained translator."""
    out: Path = Field(title="OUT")
    """Directory of the exported model; the command makes it."""
    to: Literal["ctranslate2", "hugging-face", "onnx"] = "ctranslate2"
    """ctranslate2: its input and output are SentencePiece pieces. hugging-face: for transformers,
    with its tokenizer. onnx: for transformers.js, in a browser or node."""
    quantization: str | None = None
    """Number format of the weights. ctranslate2: float32, float16, bfloat16, int8, int8_float32,
    int8_float16, int8_bfloat16, int16. hugging-face: the first three. onnx: float32, int8.
    None: float32."""


OPTIONS = ExportOptions


def run(options: ExportOptions) -> int:
    """Export, and print the place, the program, the number format and the size.

    Raises:
        UsageError: the program cannot hold an option of the model, or OUT exists.
        InputError: BUNDLE is no bundle, or a package is not installed.
    """
    writer, default = _WRITERS[options.to]
    quantization = options.quantization or default
    notes = writer(options.bundle, options.out, quantization)
    files = options.out.rglob("*") if options.out.is_dir() else [options.out]
    size = sum(path.stat().st_size for path in files if path.is_file())
    print(f"{options.out}: {options.to}, {quantization}, {size / 1e6:.1f} MB")
    for note in notes:
        print(f"note: {note}")
    return 0


def _ctranslate2(bundle: Path, out: Path, quantization: str) -> list[str]:
    from glassformer.bundle import load_bundle
    from glassformer.interchange.ctranslate2.export import check_quantization, export_ctranslate2

    check_quantization(quantization)
    export_ctranslate2(load_bundle(bundle), out, quantization=quantization)
    return []


def _hugging_face(bundle: Path, out: Path, quantization: str) -> list[str]:
    from glassformer.bundle import load_bundle
    from glassformer.interchange.hugging_face.export import export_hugging_face

    return export_hugging_face(load_bundle(bundle), out, quantization=quantization)


def _onnx(bundle: Path, out: Path, quantization: str) -> list[str]:
    from glassformer.bundle import load_bundle
    from glassformer.interchange.onnx.export import export_onnx

    return export_onnx(load_bundle(bundle), out, quantization=quantization)


# For each program its writer, which returns notes, and its number format without an option.
_WRITERS: dict[str, tuple[Callable[[Path, Path, str], list[str]], str]] = {
    "ctranslate2": (_ctranslate2, "float32"),
    "hugging-face": (_hugging_face, "float32"),
    "onnx": (_onnx, "float32"),
}
