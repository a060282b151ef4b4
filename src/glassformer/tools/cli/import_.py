"""``glassformer import``: reads a translator that another program has made."""

from pathlib import Path

from pydantic import Field

from glassformer.config import Options
from glassformer.support.progress import shown_progress, working

__all__ = ["OPTIONS", "ImportOptions", "run"]


class ImportOptions(Options):
    """Read the translator in SOURCE, and write it as a new BUNDLE.

    The command downloads nothing. SOURCE is one of three kinds:
    a directory of Hugging Face's transformers with safetensors and SentencePiece models (or
    tokenizer.json of NLLB and mBART-50), for MarianMT (OPUS-MT), M2M100, NLLB-200 or mBART-50;
    a directory of CTranslate2 with its SentencePiece models;
    a package of Argos Translate.
    """

    source: Path = Field(title="SOURCE")
    """Directory or file of the model to import."""
    bundle: Path = Field(title="BUNDLE")
    """Directory of the bundle; the command makes it."""
    source_language: str | None = None
    """Code of the source language in the model's form, such as en, eng_Latn or en_XX."""
    target_language: str | None = None
    """Code of the target language, which a multilingual model needs."""


OPTIONS = ImportOptions


@shown_progress()
def run(options: ImportOptions) -> int:
    """Import the translator, and print its family, size, languages and differences.

    Raises:
        UsageError: BUNDLE is not empty, or a language is missing or unknown.
        InputError: a file of SOURCE is missing or faulty, or the model has unknown settings.
    """
    from glassformer.tools.interchange.sources import import_bundle

    with working("importing"):
        imported = import_bundle(
            options.source,
            options.bundle,
            source_language=options.source_language,
            target_language=options.target_language,
        )
    bundle = imported.bundle
    count = sum(weight.numel() for weight in bundle.model.parameters())
    pair = " to ".join(bundle.languages) if bundle.languages else "languages unknown"
    print(f"{options.bundle}: {imported.family}, {count:,} parameters, {pair}")
    print(f"length penalty: {bundle.length_penalty:g} (Wu et al.; as the original at 20 subwords)")
    for note in imported.notes:
        print(f"note: {note}")
    return 0
