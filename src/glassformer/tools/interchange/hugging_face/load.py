"""A directory of transformers as a bundle."""

from dataclasses import replace
from pathlib import Path

import torch

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.preprocessing import SINGLE_SENTENCES
from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError
from glassformer.tools.interchange.hugging_face.configuration import (
    length_penalty,
    model_config,
    other_search_options,
    read_settings,
)
from glassformer.tools.interchange.hugging_face.families import weight_table
from glassformer.tools.interchange.hugging_face.vocabulary import Tokenizers, read_vocabulary
from glassformer.tools.interchange.hugging_face.weights import read_weights
from glassformer.tools.interchange.importing import Imported, in_languages

__all__ = ["import_hugging_face"]

_OPUS_NOTE = (
    "OPUS-MT's training text had Moses's punctuation, such as straight quotation marks; the bundle"
    " does not change the punctuation of a text"
)


def import_hugging_face(
    directory: Path, *, source_language: str | None = None, target_language: str | None = None
) -> Imported:
    """The translator in ``directory``, as ``save_pretrained`` writes it.

    A multilingual model needs both languages, which become the bundle's default pair.

    Raises:
        InputError: a file is missing or faulty, or the model has an unknown option.
        UsageError: a language is missing or unknown.
    """
    family, settings = read_settings(directory)
    path = directory / "config.json"
    vocabulary = read_vocabulary(directory, settings)
    source, target, exported = vocabulary.source, vocabulary.target, vocabulary.exported
    config = model_config(family, settings, path, (source, target))
    start = settings.start_id
    start_is_ours = start == target.bos_id  # as for M2M100, which starts with the end symbol
    if not start_is_ours and not 0 <= start < config.bos_id:
        raise InputError(
            f"{path}: decoder_start_token_id {start}: expected 0 to {config.bos_id - 1}"
        )
    _check_sizes(vocabulary, config, directory)
    with torch.device("meta"):  # the meta device holds names and shapes, but no numbers
        model = Transformer(config)
    table = weight_table(config)
    if not family.output_bias:
        del table["final_logits_bias"]
    read_weights(model, directory, table, start=None if start_is_ours else start)
    bundle = Bundle(
        model.eval().requires_grad_(False),
        source,
        target,
        about={"imported from": f"{family.title} in the format of Hugging Face"},
        length_penalty=length_penalty(settings.length_penalty),
        normalisation=exported.normalisation if exported else "none",
        source_lengths=exported.source_lengths if exported else SINGLE_SENTENCES,
        known=exported.known if exported else None,
        language_tokens=vocabulary.language_tokens,
    )
    first, second = vocabulary.languages
    if exported and first and second:
        bundle = replace(bundle, languages=(first, second))
    else:
        bundle = in_languages(bundle, source_language or first, target_language or second)
    notes = []
    if settings.model_type == "marian" and not exported:
        notes.append(_OPUS_NOTE)
    if not exported and (others := other_search_options(settings)):
        listed = ", ".join(f"{name} {value}" for name, value in others.items())
        notes.append(f"a bundle holds none of these search options of the model: {listed}")
    return Imported(bundle, family.title, tuple(notes))


def _check_sizes(vocabulary: Tokenizers, config: ModelConfig, directory: Path) -> None:
    for side, tokenizer, size in (
        ("source", vocabulary.source, config.source_vocab_size),
        ("target", vocabulary.target, config.target_vocab_size),
    ):
        if tokenizer.vocab_size != size:
            raise InputError(
                f"{directory}: the {side} tokenizer has {tokenizer.vocab_size} tokens, but"
                f" config.json says {size}: copy both from one model"
            )
