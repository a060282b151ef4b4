"""A directory of transformers as a bundle."""

from pathlib import Path

from glassformer.bundle import Bundle
from glassformer.errors import InputError
from glassformer.interchange.hugging_face.configuration import (
    length_penalty,
    model_config,
    other_search_options,
    read_settings,
)
from glassformer.interchange.hugging_face.families import weight_table
from glassformer.interchange.hugging_face.vocabulary import Languages, read_vocabulary
from glassformer.interchange.hugging_face.weights import read_weights
from glassformer.interchange.imported import Imported
from glassformer.model.transformer import Transformer

__all__ = ["OPUS_NOTE", "import_hugging_face"]

OPUS_NOTE = "Moses's normalisation of punctuation, which OPUS-MT had in training, is not applied"


def import_hugging_face(
    directory: Path, *, source_language: str | None = None, target_language: str | None = None
) -> Imported:
    """The translator in ``directory``, as ``save_pretrained`` writes it.

    A multilingual model needs its languages, as it names them: a bundle translates one pair.

    Raises:
        InputError: a file is missing or faulty, or this program has no place for some of it.
        UsageError: a language is missing or unknown.
    """
    family, settings = read_settings(directory)
    path = directory / "config.json"
    for name in ("vocab_size", "decoder_start_token_id"):
        if not isinstance(settings.get(name), int):
            raise InputError(f"{path}: {name} {settings.get(name)}: expected a whole number")
    if not isinstance(settings.get("length_penalty", 1.0), int | float):
        raise InputError(
            f"{path}: length_penalty {settings['length_penalty']!r}: expected a number"
        )
    wanted = Languages(source_language, target_language)
    vocabulary = read_vocabulary(directory, settings["model_type"], settings, wanted)
    config = model_config(family, settings | {"unk_token_id": vocabulary.target.unk_id}, path)
    start = settings["decoder_start_token_id"]
    if not 0 <= start < config.bos_id:
        raise InputError(
            f"{path}: decoder_start_token_id {start}: expected 0 to {config.bos_id - 1}"
        )
    model = Transformer(config)
    table = weight_table(config)
    if not family.output_bias:
        del table["final_logits_bias"]
    read_weights(model, directory, table, start=start)
    bundle = Bundle(
        model.eval().requires_grad_(False),
        vocabulary.source,
        vocabulary.target,
        vocabulary.languages,
        about={"imported from": f"{family.title} in the format of Hugging Face"},
        length_penalty=length_penalty(settings),
    )
    notes = []
    if settings["model_type"] == "marian":
        notes.append(OPUS_NOTE)
    if others := other_search_options(settings):
        listed = ", ".join(f"{name} {value}" for name, value in others.items())
        notes.append(f"a bundle does not hold these search options: {listed}")
    return Imported(bundle, family.title, tuple(notes))
