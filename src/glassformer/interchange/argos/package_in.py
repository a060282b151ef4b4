"""A package of Argos Translate as a bundle: a CTranslate2 model and one SentencePiece model."""

from dataclasses import replace
from pathlib import Path, PurePosixPath

from glassformer.archive import unpacked
from glassformer.data.preprocessing import SINGLE_SENTENCES
from glassformer.errors import InputError
from glassformer.interchange.ctranslate2.reading.load import read_translator
from glassformer.interchange.hugging_face.configuration import length_penalty
from glassformer.interchange.importing import Imported, read_json

__all__ = ["LENGTH_PENALTY", "METADATA", "MODEL", "TOKENIZER", "import_argos"]

METADATA, MODEL, TOKENIZER = "metadata.json", "model", "sentencepiece.model"
LENGTH_PENALTY = 0.2
"""Argos Translate's own, the same for all packages."""
_OTHER_TOKENIZER = "bpe.model"


def import_argos(
    source: Path, *, source_language: str | None = None, target_language: str | None = None
) -> Imported:
    """The translator in a package: an ``.argosmodel`` file, or the directory in it.

    The languages are the package's, if a person names none.

    Raises InputError: a file is missing or faulty, or this program has no place for some of it.
    """
    languages = source_language, target_language
    if source.is_dir():
        return _import(source, languages)
    with unpacked(source, _is_wanted) as place:
        found = sorted([*place.glob(METADATA), *place.glob(f"*/{METADATA}")])
        if not found:
            raise InputError(f"{source}: it holds no {METADATA}: not a package of Argos Translate")
        return _import(found[0].parent, languages)


def _is_wanted(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return parts[-1] in (METADATA, TOKENIZER, _OTHER_TOKENIZER) or MODEL in parts[:-1]


def _import(directory: Path, languages: tuple[str | None, str | None]) -> Imported:
    metadata = read_json(directory / METADATA)
    kind = metadata.get("type", "translate")
    if kind != "translate":
        raise InputError(f"{directory / METADATA}: type {kind!r}: expected 'translate'")
    tokenizer = directory / TOKENIZER
    if not tokenizer.is_file() and (directory / _OTHER_TOKENIZER).is_file():
        raise InputError(
            f"{directory / _OTHER_TOKENIZER}: Moses with subword-nmt, not SentencePiece: this"
            f" program has no such tokenizer; expected {TOKENIZER}"
        )
    prefix = metadata.get("target_prefix") or ""
    codes = [metadata.get(name) for name in ("from_code", "to_code")]
    pair = tuple(given or code for given, code in zip(languages, codes, strict=True))
    for name, value in (("target_prefix", prefix), ("from_code", pair[0]), ("to_code", pair[1])):
        if not isinstance(value, str):
            raise InputError(f"{directory / METADATA}: {name} {value!r}: expected a text")
    bundle, notes = read_translator(
        directory / MODEL, tokenizer, tokenizer, target_prefix=str(prefix)
    )
    bundle = replace(
        bundle,
        languages=(str(pair[0]), str(pair[1])),
        language_tokens=None,  # Argos Translate puts no token before a source
        about={"imported from": "a package of Argos Translate"},
        length_penalty=length_penalty({"length_penalty": LENGTH_PENALTY}),
        source_lengths=SINGLE_SENTENCES,  # Argos Translate cuts text too
    )
    return Imported(bundle, "Argos Translate", notes)
