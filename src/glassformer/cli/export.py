"""``glassformer export``: a translator as a model of another engine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from glassformer.config import Options

__all__ = ["OPTIONS", "ExportOptions", "run"]


class ExportOptions(Options):
    """Write the translator in BUNDLE as a model of another engine into the new DIRECTORY."""

    bundle: Path = Field(title="BUNDLE")
    """The directory of a trained translator."""
    directory: Path = Field(title="DIRECTORY")
    """Where the model goes; made here."""
    format: Literal["ctranslate2"] = "ctranslate2"
    """ctranslate2: for ctranslate2.Translator, which takes and gives SentencePiece pieces."""
    quantization: str = "float32"
    """Kind of the weights: float32, float16, bfloat16, int8, int8_float32, int8_float16,
    int8_bfloat16, int16."""


OPTIONS = ExportOptions


def run(options: ExportOptions) -> int:
    """Export, and say what was written.

    Raises:
        UsageError: an option that the engine cannot hold, or a DIRECTORY that is not empty.
        InputError: BUNDLE is none, or the engine is not installed.
    """
    from glassformer.bundle import load_bundle
    from glassformer.interchange.ctranslate2.export import check_quantization, export_ctranslate2

    check_quantization(options.quantization)
    directory = options.directory.resolve()  # a link stays a link
    export_ctranslate2(load_bundle(options.bundle), directory, quantization=options.quantization)
    size = sum(path.stat().st_size for path in directory.iterdir())
    print(f"{options.directory}: {options.format}, {options.quantization}, {size / 1e6:.1f} MB")
    return 0
