"""A package of Argos Translate as a bundle: a CTranslate2 model and one SentencePiece model."""

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel

from glassformer.data.preprocessing import SINGLE_SENTENCES
from glassformer.support.errors import InputError
from glassformer.support.strangers import read_json, unpacked
from glassformer.tools.interchange.ctranslate2.reading.load import read_translator
from glassformer.tools.interchange.hugging_face.configuration import length_penalty
from glassformer.tools.interchange.importing import Imported

__all__ = ["LENGTH_PENALTY", "METADATA", "MODEL", "TOKENIZER", "import_argos"]

METADATA, MODEL, TOKENIZER = "metadata.json", "model", "sentencepiece.model"
LENGTH_PENALTY = 0.2
"""Argos Translate's length penalty, in all packages."""
_OTHER_TOKENIZER = "bpe.model"


def import_argos(
    source: Path, *, source_language: str | None = None, target_language: str | None = None
) -> Imported:
    """The translator in a package, which is an ``.argosmodel`` file or an unpacked directory.

    None stands for the package's language.

    Raises InputError if a file is missing or faulty, or the model has an unknown option.
    """
    languages = source_language, target_language
    if source.is_dir():
        return _import(source, languages)
    with unpacked(source, _is_wanted) as place:
        metadata = sorted([*place.glob(METADATA), *place.glob(f"*/{METADATA}")])
        if not metadata:
            raise InputError(f"{source} is no package of Argos Translate: it holds no {METADATA}")
        return _import(metadata[0].parent, languages)


def _is_wanted(name: str) -> bool:
    place = PurePosixPath(name)
    return place.name in (METADATA, TOKENIZER, _OTHER_TOKENIZER) or MODEL in place.parts[:-1]


class _Metadata(BaseModel):
    """``metadata.json``, as far as import reads it."""

    type: Literal["translate"] = "translate"
    from_code: str
    to_code: str
    target_prefix: str | None = None


def _import(directory: Path, languages: tuple[str | None, str | None]) -> Imported:
    metadata = read_json(directory / METADATA, _Metadata)
    tokenizer = directory / TOKENIZER
    if not tokenizer.exists() and (directory / _OTHER_TOKENIZER).exists():
        raise InputError(
            f"{directory / _OTHER_TOKENIZER}: this program has no tokenizer of Moses with"
            f" subword-nmt: expected {TOKENIZER}"
        )
    source, target = languages
    bundle, notes = read_translator(
        directory / MODEL, tokenizer, tokenizer, target_prefix=metadata.target_prefix or ""
    )
    bundle = replace(
        bundle,
        languages=(source or metadata.from_code, target or metadata.to_code),
        language_tokens=None,  # Argos Translate puts no token before a source
        about={"imported from": "a package of Argos Translate"},
        length_penalty=length_penalty(LENGTH_PENALTY),
        source_lengths=SINGLE_SENTENCES,  # Argos Translate cuts text into sentences too
    )
    return Imported(bundle, "Argos Translate", notes)
