"""``glassformer export``: writes a translator for another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from glassformer.config import Options
from glassformer.support.errors import UsageError
from glassformer.support.files import check_output
from glassformer.support.progress import shown_progress, working

if TYPE_CHECKING:
    from glassformer.bundle import Bundle

__all__ = ["OPTIONS", "ExportOptions", "run"]


class ExportOptions(Options):
    """Write the translator in BUNDLE for another program, as the new OUT."""

    bundle: Path = Field(title="BUNDLE")
    """Directory of a trained translator."""
    out: Path = Field(title="OUT")
    """Directory or file of the exported model; the command makes it."""
    to: Literal["ctranslate2", "hugging-face", "argos", "page"] = "ctranslate2"
    """Form of the export. ctranslate2 reads and writes SentencePiece pieces. hugging-face is for
    transformers, with a tokenizer. argos is a package for Argos Translate and LibreTranslate. page
    is one .html file that translates offline in a browser."""
    source_language: str | None = None
    """Code of the source language, such as en, for a multilingual bundle or a package of argos.
    None means the bundle's language."""
    target_language: str | None = None
    """Code of the target language. None means the bundle's language."""
    quantization: str | None = None
    """Number format of the weights. ctranslate2 and argos take float32, float16, bfloat16, int8,
    int8_float32, int8_float16, int8_bfloat16, int16; hugging-face takes float32, float16, bfloat16;
    page takes int8, float16, float32. None means int8 for argos and page, else float32."""


OPTIONS = ExportOptions


@shown_progress()
def run(options: ExportOptions) -> int:
    """Export the translator, and print its place, program, number format and size.

    Raises:
        UsageError: the other program does not know an option of the model, or OUT exists.
        InputError: BUNDLE is no bundle, or a package is not installed.
    """
    default = "int8" if options.to in ("argos", "page") else "float32"
    quantization = options.quantization or default
    with working("exporting"):
        notes = _write(options, _bundle(options), quantization)
    files = options.out.rglob("*") if options.out.is_dir() else [options.out]
    size = sum(path.stat().st_size for path in files if path.is_file())
    print(f"{options.out}: {options.to}, {quantization}, {size / 1e6:.1f} MB")
    for note in notes:
        print(f"note: {note}")
    return 0


def _bundle(options: ExportOptions) -> Bundle:
    """The bundle, which keeps only the languages of the options if it is multilingual."""
    from glassformer.bundle import load_bundle

    bundle = load_bundle(options.bundle)
    if bundle.language_tokens is not None:
        return bundle.between(options.source_language, options.target_language)
    for side in ("source", "target"):
        if options.to != "argos" and getattr(options, f"{side}_language") is not None:
            raise UsageError(
                f"--{side}-language: the bundle has one language pair, and only --to argos takes"
                " other codes: leave the option out"
            )
    return bundle


def _write(options: ExportOptions, bundle: Bundle, quantization: str) -> list[str]:
    """Export in the form of ``options.to``; return notes to print."""
    out = options.out
    if options.to == "argos":
        from glassformer.tools.interchange.argos.export import export_argos

        languages = options.source_language, options.target_language
        return export_argos(bundle, out, quantization=quantization, languages=languages)
    if options.to == "page":
        from glassformer.tools.web.living_page import write_page

        if out.exists():
            raise UsageError(f"{out} exists: give a new file")
        check_output("OUT", out)
        return write_page(bundle, out, face="translate", quantization=quantization)
    if options.to == "hugging-face":
        from glassformer.tools.interchange.hugging_face.export import export_hugging_face

        return export_hugging_face(bundle, out, quantization=quantization)
    from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2

    export_ctranslate2(bundle, out, quantization=quantization)
    prefixes = ("source", bundle.source_tokenizer), ("target_prefix", bundle.target_tokenizer)
    return [
        f"begin each {name} with the piece {' '.join(tokenizer.prefix)}"
        for name, tokenizer in prefixes
        if tokenizer.prefix
    ]
