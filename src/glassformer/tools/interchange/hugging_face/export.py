"""Writes a bundle as a directory that Hugging Face's transformers loads.

The model's structure decides the family. The paper's post-norm model becomes MarianMT, a pre-norm
model Pegasus, and an imported model gets its former family. The tokenizer is ``tokenizer.json``,
which works for every family.
"""

import json
from pathlib import Path
from typing import Any, get_args

import torch

from glassformer.bundle import Bundle, facts
from glassformer.config import BEAM, EXTRA_LENGTH, AnyPrecision
from glassformer.data.normaliser import normaliser
from glassformer.data.preprocessing import LONGEST_SOURCE
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.support.errors import UsageError, check_choice
from glassformer.support.files import new_directory
from glassformer.tools.interchange.hugging_face.configuration import (
    ALIKE,
    Settings,
    their_length_penalty,
)
from glassformer.tools.interchange.hugging_face.families import FAMILIES, family_for, weight_table
from glassformer.tools.interchange.hugging_face.id_check import check_texts, id_note
from glassformer.tools.interchange.hugging_face.tokenizer_json import (
    tokenizer_config,
    tokenizer_json,
)
from glassformer.tools.interchange.hugging_face.vocabulary import KEY, OfBundle
from glassformer.tools.interchange.hugging_face.weights import their_start, write_weights
from glassformer.tools.interchange.stock import require_stock

__all__ = ["QUANTIZATIONS", "export_hugging_face"]

QUANTIZATIONS = get_args(AnyPrecision)
_EPSILON = 1e-5  # epsilon of LayerNorm in all families


def export_hugging_face(
    bundle: Bundle, directory: Path, *, quantization: str = "float32"
) -> list[str]:
    """Write ``bundle`` for transformers into a new directory; return notes to print.

    ``AutoTokenizer`` and ``AutoModelForSeq2SeqLM`` load the directory. A killed export leaves no
    ``directory``.

    Raises UsageError if no family holds an option of the model, the model has own parts, the
    quantization is unknown, or the directory is not empty.
    """
    check_choice("quantization", quantization, QUANTIZATIONS)
    require_stock(bundle, "transformers")
    model_type = family_for(bundle.model.config)
    family = FAMILIES[model_type]
    _refuse(bundle, model_type)
    table = weight_table(bundle.model.config)
    if not family.output_bias:
        del table["final_logits_bias"]
    start = their_start(bundle.model)
    with new_directory(directory) as place:
        notes = _write_settings(bundle, place, model_type, dtype=quantization, start=start)
        write_weights(
            bundle.model,
            place / "model.safetensors",
            table,
            dtype=getattr(torch, quantization),
            sinusoids=family.stored_sinusoids,
        )
        (place / "README.md").write_text(_readme(bundle, directory.name), "utf-8")
    theirs = their_length_penalty(bundle.length_penalty)
    notes.append(
        f"length_penalty {theirs:g} stands for {bundle.length_penalty:g}: alike at 20 subwords"
    )
    return [f"it is a {family.title} model", *notes]


def _write_settings(
    bundle: Bundle, place: Path, model_type: str, *, dtype: str, start: int | None
) -> list[str]:
    """Write the tokenizers, the model's options and the search options; return notes.

    ``start`` is the id that takes the place of the start symbol, which the files lack.
    """
    generation = _generation_settings(bundle, start)
    ids = {name: value for name, value in generation.items() if name.endswith("_token_id")}
    settings = _model_settings(bundle, model_type, left_out=start is not None)
    _write_json(place / "config.json", {**settings, "dtype": dtype, **ids})
    _write_json(place / "generation_config.json", generation)
    notes = _write_tokenizers(bundle, place, start)
    if bundle.source_lengths or bundle.normalisation == "text":
        notes.append(
            "transformers does not cut a text into sentences, and leaves capitals as they are"
        )
    if bundle.alignment:
        notes.append("the exported model has no record of the heads that align words")
    return notes


def _write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file with indents, for people to read."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", "utf-8")


def _write_tokenizers(bundle: Bundle, place: Path, start: int | None) -> list[str]:
    """Write the tokenizers as JSON, and as SentencePiece models for ``import``; return notes.

    The JSON of a target tokenizer with other subwords goes into ``target``, a folder of ``place``.
    """
    source, target = bundle.tokenizers
    record = OfBundle(
        languages=bundle.languages,
        normalisation=bundle.normalisation,
        source_lengths=bundle.source_lengths,
        known=bundle.known,
        source_prefix=source.prefix,
        target_prefix=target.prefix,
        source_known=source.known,
        target_known=target.known,
        language_tokens=bundle.language_tokens,
    )
    added = start is not None
    sides = [(place, source)] if _alike(bundle) else [(place, source), (place / "target", target)]
    texts, checks = check_texts(bundle.tokenizers), []
    for directory, tokenizer in sides:
        directory.mkdir(exist_ok=True)
        size = tokenizer.vocab_size - added
        normalisation = bundle.normalisation if tokenizer is source else "none"
        longest = bundle.model.config.max_length_of_source
        content = tokenizer_json(tokenizer, size=size, normalisation=normalisation)
        options = tokenizer_config(tokenizer, size=size, longest=longest)
        symbols = {name: text for name, text in options.items() if name[3:] == "_token"}
        _write_json(directory / "tokenizer.json", content)
        _write_json(directory / "special_tokens_map.json", symbols)
        if directory == place:
            options[KEY] = record.model_dump()
        _write_json(directory / "tokenizer_config.json", options)
        side = "source" if tokenizer is source else "target"
        checks.append(f"{side}: {id_note(directory, tokenizer, texts, normaliser(normalisation))}")
    source.save(place / "source.model")
    target.save(place / "target.model")
    notes = checks
    if len(sides) > 1:
        notes.append(
            "two vocabularies: the tokenizer in target/ decodes;"
            " AutoTokenizer.from_pretrained(OUT, subfolder='target')"
        )
    return notes


def _generation_settings(bundle: Bundle, start: int | None) -> dict[str, Any]:
    """The content of ``generation_config.json``, as near to the bundle's search as possible."""
    config, target = bundle.model.config, bundle.target_tokenizer
    size = config.target_vocab_size - (start is not None)
    never = [index for index in Vocabulary.of(target).never_produced if index < size]
    return {
        "decoder_start_token_id": config.bos_id if start is None else start,
        "pad_token_id": config.pad_id,
        "eos_token_id": config.eos_id,
        "bos_token_id": config.bos_id if start is None else None,
        "forced_bos_token_id": target.prefix_ids[0] if target.prefix_ids else None,
        "forced_eos_token_id": None,
        "bad_words_ids": [[index] for index in never],
        "min_new_tokens": len(target.prefix_ids) + 1,  # no translation is empty
        "max_length": min(config.max_length, LONGEST_SOURCE + EXTRA_LENGTH),
        "early_stopping": True,  # nearest to our search; other values prefer long translations
        "length_penalty": their_length_penalty(bundle.length_penalty),
        "do_sample": False,
        "num_beams": BEAM,
    }


def _alike(bundle: Bundle) -> bool:
    """Whether each id has the same subword on both sides."""
    source, target = bundle.tokenizers
    return source.vocab_size == target.vocab_size and all(
        source.subword(index) == target.subword(index) for index in range(source.vocab_size)
    )


def _refuse(bundle: Bundle, model_type: str) -> None:
    """Raise UsageError for an option that the family lacks."""
    config, title = bundle.model.config, FAMILIES[model_type].title
    remedy = "export to ctranslate2, which can hold it"
    if config.norm_epsilon != _EPSILON:
        raise UsageError(
            f"norm_epsilon is {config.norm_epsilon}, but {title} has {_EPSILON}: {remedy}"
        )
    if config.tying in ("target", "none") and model_type != "marian":
        raise UsageError(
            f"tying is {config.tying!r}, but {title} has one vocabulary for both sides: train with"
            f" one vocabulary, train with norm 'post', which becomes MarianMT, or {remedy}"
        )
    if config.source_max_length not in (None, config.max_length):
        raise UsageError(
            f"source_max_length is {config.source_max_length} and max_length is"
            f" {config.max_length}, but {title} has one number for both: {remedy}"
        )
    if len(bundle.target_tokenizer.prefix) > 1:
        prefix = " ".join(bundle.target_tokenizer.prefix)
        raise UsageError(
            f"the target's prefix {prefix} has several subwords, but {title} forces one: {remedy}"
        )
    if config.position_frequencies == "tensor2tensor" and config.pad_id + 1 != 2:
        raise UsageError(
            f"pad_id is {config.pad_id} and position_offset is 2, but {title} has the"
            f" position_offset pad_id + 1: {remedy}"
        )
    bias = bundle.model.output_bias
    rows = slice(None) if their_start(bundle.model) is None else slice(-1)
    if bias is not None and not FAMILIES[model_type].output_bias and bias[rows].any():
        raise UsageError(
            f"the model has a bias on the logits, such as fine-tuning gives, but {title} has none:"
            f" {remedy}"
        )


def _model_settings(bundle: Bundle, model_type: str, *, left_out: bool) -> dict[str, Any]:
    """The sizes and options in ``config.json``, the inverse of ``configuration.model_config``.

    ``left_out`` says that the files lack the start symbol.
    """
    config = bundle.model.config
    settings: dict[str, Any] = {
        **{Settings.model_fields[name].alias or name: getattr(config, name) for name in ALIKE},
        "architectures": [FAMILIES[model_type].architecture],
        "model_type": model_type,
        "is_encoder_decoder": True,
        "vocab_size": config.source_vocab_size - left_out,
        "decoder_attention_heads": config.num_heads,
        "decoder_ffn_dim": config.d_ff,
        "tie_word_embeddings": config.tying in ("three-way", "target"),
    }
    if model_type == "marian":
        settings["decoder_vocab_size"] = config.target_vocab_size - left_out
        settings["share_encoder_decoder_embeddings"] = config.tying in ("three-way", "embeddings")
    return settings


def _readme(bundle: Bundle, name: str) -> str:
    """The model card: languages, size, data and scores, and how to translate with the model."""
    lines = [
        "```python",
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
        "",
        f'tokenizer = AutoTokenizer.from_pretrained("{name}")',
        f'model = AutoModelForSeq2SeqLM.from_pretrained("{name}")',
    ]
    decoder = "tokenizer"
    if not _alike(bundle):
        decoder = "target"
        lines.append(f'target = AutoTokenizer.from_pretrained("{name}", subfolder="target")')
    lines += [
        'batch = tokenizer(["A dog runs."], return_tensors="pt", padding=True)',
        f"print({decoder}.batch_decode(model.generate(**batch), skip_special_tokens=True))",
        "```",
    ]
    pair = bundle.languages
    card = [
        "---",
        *([f"language: [{', '.join(pair)}]"] if pair else []),
        "pipeline_tag: translation",
        "library_name: transformers",
        "---",
        f"# A translator, {' to '.join(pair) if pair else 'source to target'}",
        "",
        "Made by Glassformer.",
        "",
        *facts(bundle),
        "",
        *lines,
    ]
    return "\n".join(card) + "\n"
