"""A directory of CTranslate2's converters as a bundle."""

from dataclasses import replace
from pathlib import Path

import torch

from glassformer.bundle import Bundle
from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError, counted
from glassformer.support.strangers import shown
from glassformer.tools.interchange.ctranslate2.reading.configuration import (
    model_config,
    read_settings,
)
from glassformer.tools.interchange.ctranslate2.reading.model_file import read_model_file
from glassformer.tools.interchange.ctranslate2.reading.tokens import read_tokens
from glassformer.tools.interchange.ctranslate2.reading.weights import read_weights
from glassformer.tools.interchange.hugging_face.configuration import length_penalty
from glassformer.tools.interchange.hugging_face.vocabulary import language_tokens
from glassformer.tools.interchange.importing import Imported, in_languages
from glassformer.tools.interchange.piece_order import read_sentencepiece

__all__ = ["import_ctranslate2_model", "read_translator"]

# The SentencePiece models that may lie beside a model.bin: source, target.
_TOKENIZERS = (
    ("source.model", "target.model"),  # written by `export`
    ("source.spm", "target.spm"),
    ("sentencepiece.model",) * 2,
    ("sentencepiece.bpe.model",) * 2,
    ("tokenizer.model",) * 2,
    ("tokenizer.json",) * 2,
)
_INTEGERS, _SHOWN = {torch.int8, torch.int16}, 5
_QUANTIZED = "the weights come from int8 or int16, and are exact to half a step"


def import_ctranslate2_model(
    directory: Path, *, source_language: str | None = None, target_language: str | None = None
) -> Imported:
    """The translator in ``directory``: model.bin, vocabularies, and SentencePiece models.

    Raises InputError if a file is missing or faulty, or the model has an unknown option.
    """
    for source, target in _TOKENIZERS:
        if (directory / source).exists() and (directory / target).exists():
            break
    else:
        raise InputError(
            f"{directory} holds no SentencePiece model: put the original's beside model.bin, as"
            " sentencepiece.model, or as source.spm and target.spm"
        )
    bundle, notes = read_translator(directory, directory / source, directory / target)
    bundle = replace(
        bundle,
        about={"imported from": "a model in the format of CTranslate2"},
        length_penalty=length_penalty(),
    )
    return Imported(in_languages(bundle, source_language, target_language), "CTranslate2", notes)


def read_translator(
    directory: Path, source_model: Path, target_model: Path, *, target_prefix: str = ""
) -> tuple[Bundle, tuple[str, ...]]:
    """The CTranslate2 model in ``directory`` with its tokenizers, and notes.

    ``target_prefix`` is a token with which every target begins.

    Raises InputError as :func:`import_ctranslate2_model` does.
    """
    file = read_model_file(directory / "model.bin")
    settings = read_settings(directory, file)
    start_is_zero = bool(file.option("decoder/start_from_zero_embedding"))
    source, target = read_tokens(directory, settings, start_is_zero=start_is_zero)
    if not settings.add_source_eos:
        source = source.without_end()
    config = model_config(file, settings, (source, target))
    with torch.device("meta"):  # the meta device holds names and shapes, but no numbers
        model = Transformer(config)
    read_weights(model, file, (source, target))
    models = [read_sentencepiece(path) for path in (source_model, target_model)]
    beside = source.beside(models)
    languages = language_tokens(beside)
    controls = languages.subwords.values() if languages else ()
    bundle = Bundle(
        model.eval().requires_grad_(False),
        source.tokenizer(models[0], languages=controls),
        target.tokenizer(models[1], prefix=target_prefix, languages=controls),
        language_tokens=languages,
    )
    notes = []
    if {weight.dtype for weight in file.stored.values() if weight.dim()} & _INTEGERS:
        notes.append(_QUANTIZED)
    if not languages and (unknown := [text for text in beside if text != target_prefix]):
        some = ", ".join(map(shown, unknown[:_SHOWN])) + (", …" if len(unknown) > _SHOWN else "")
        notes.append(
            f"no text has {counted(len(unknown), 'token')} of the vocabulary ({some}): if the model"
            " needs such a token before texts, as for a language, the bundle translates wrongly"
        )
    return bundle, tuple(notes)
