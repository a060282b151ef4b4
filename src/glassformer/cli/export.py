"""``glassformer export``: writes a translator as a model of another engine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from glassformer.config import Options

__all__ = ["OPTIONS", "ExportOptions", "run"]


class ExportOptions(Options):
    """Write the translator in BUNDLE as a model of another engine into a new DIRECTORY."""

    bundle: Path = Field(title="BUNDLE")
    """Directory of a trained translator."""
    directory: Path = Field(title="DIRECTORY")
    """Directory of the exported model; the command makes it."""
    format: Literal["ctranslate2"] = "ctranslate2"
    """Engine of the exported model; its input and output are SentencePiece pieces."""
    quantization: str = "float32"
    """Number format of the weights: float32, float16, bfloat16, int8, int8_float32, int8_float16,
    int8_bfloat16, int16."""


OPTIONS = ExportOptions


def run(options: ExportOptions) -> int:
    """Export, and print the directory, the format and the size.

    Raises:
        UsageError: the engine cannot hold an option of the model, or DIRECTORY is not empty.
        InputError: BUNDLE is no bundle, or the engine is not installed.
    """
    from glassformer.bundle import load_bundle
    from glassformer.interchange.ctranslate2.export import check_quantization, export_ctranslate2

    check_quantization(options.quantization)
    directory = options.directory.resolve()  # a link stays a link
    export_ctranslate2(load_bundle(options.bundle), directory, quantization=options.quantization)
    size = sum(path.stat().st_size for path in directory.iterdir())
    print(f"{options.directory}: {options.format}, {options.quantization}, {size / 1e6:.1f} MB")
    return 0
