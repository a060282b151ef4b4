"""``config.json`` of a family to our settings; an option without a counterpart is refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from glassformer.config import BEAM, MOST_LENGTH_PENALTY, ModelConfig
from glassformer.errors import InputError
from glassformer.interchange.hugging_face.families import Family, family_of
from glassformer.interchange.importing import config_of, read_json, tying_of

__all__ = [
    "ACTIVATIONS",
    "length_penalty",
    "model_config",
    "other_search_options",
    "read_settings",
    "their_length_penalty",
]

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""Their names of activations, and ours."""
# Two options of theirs that are one of ours.
_ALIKE = {
    "encoder_attention_heads": "decoder_attention_heads",
    "encoder_ffn_dim": "decoder_ffn_dim",
}
_READ = {
    "model_type", "d_model", "vocab_size", "decoder_vocab_size", "encoder_layers", "decoder_layers",
    "encoder_attention_heads", "decoder_attention_heads", "encoder_ffn_dim", "decoder_ffn_dim",
    "activation_function", "scale_embedding", "max_position_embeddings", "dropout",
    "attention_dropout", "activation_dropout", "pad_token_id", "eos_token_id", "bos_token_id",
    "unk_token_id", "decoder_start_token_id", "share_encoder_decoder_embeddings",
    "tie_word_embeddings", "is_encoder_decoder",
}  # fmt: skip
_NO_EFFECT = {  # of training, of other tasks, about the file; or transformers itself ignores them
    "_name_or_path", "_num_labels", "add_bias_logits", "add_cross_attention",
    "add_final_layer_norm", "architectures", "chunk_size_feed_forward", "classif_dropout",
    "classifier_dropout", "cross_attention_hidden_size", "decoder_layerdrop", "dtype",
    "encoder_layerdrop", "extra_pos_embeddings", "finetuning_task",
    "force_bos_token_to_be_generated", "gradient_checkpointing", "id2label", "init_std",
    "is_decoder", "label2id",
    "normalize_before", "normalize_embedding", "num_attention_heads", "num_hidden_layers",
    "num_labels", "num_return_sequences", "hidden_size", "output_attentions",
    "output_hidden_states", "output_past", "output_scores", "prefix", "problem_type",
    "pruned_heads", "remove_invalid_values", "return_dict", "return_dict_in_generate", "save_step",
    "sep_token_id",
    "static_position_embeddings", "task_specific_params", "tf_legacy_loss", "tie_encoder_decoder",
    "tokenizer_class", "torch_dtype", "torchscript", "transformers_version", "use_bfloat16",
    "use_cache",
}  # fmt: skip
_HELD = {  # a bundle holds them, or what our search does in their place
    "length_penalty", "early_stopping", "bad_words_ids", "forced_bos_token_id",
    "forced_eos_token_id",
}  # fmt: skip
_OTHERS = {  # a search option that a bundle does not hold, and the value that our search has
    "num_beams": BEAM, "max_length": 20, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0, "min_length": 0, "do_sample": False, "num_beam_groups": 1,
    "diversity_penalty": 0.0, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "typical_p": 1.0,
    "exponential_decay_length_penalty": None, "suppress_tokens": None,
    "begin_suppress_tokens": None, "renormalize_logits": False, "max_new_tokens": None,
}  # fmt: skip
_TYPICAL_LENGTH = 20  # subwords of a sentence


def read_settings(directory: Path) -> tuple[Family, dict[str, Any]]:
    """The family and the options of a directory; those of generation_config.json come last.

    Raises InputError for another family, or for an option that this program does not know.
    """
    path = directory / "config.json"
    if not path.is_file():
        reason = "it holds no config.json" if directory.is_dir() else "no such directory"
        raise InputError(f"{directory}: not a directory of transformers ({reason})")
    settings = read_json(path)
    family = family_of(str(settings.get("model_type")), path)
    for name, value in settings.items():
        if name not in _READ | _NO_EFFECT | _HELD | _OTHERS.keys() and value:
            raise InputError(
                f"{path}: unknown option {name} {value!r}: it could change the translations, and"
                " this program has no place for it"
            )
    generation = directory / "generation_config.json"
    options = read_json(generation) if generation.is_file() else {}
    given = {name: value for name, value in options.items() if value is not None}
    ids = {name: value for name, value in given.items() if name in _READ}  # if config.json has none
    searching = {name: value for name, value in given.items() if name in _HELD | _OTHERS.keys()}
    return family, ids | settings | searching


def model_config(
    family: Family, settings: Mapping[str, Any], path: Path, *, start_is_ours: bool = False
) -> ModelConfig:
    """Our settings for a model of ``family``.

    ``start_is_ours``: the decoder starts with a symbol that ours may read, such as the end symbol.
    Else the vocabularies have one row more, for our start symbol.

    Raises InputError, which names the file ``path``, for a value that no setting holds.
    """
    for encoder, decoder in _ALIKE.items():
        if settings.get(encoder) != settings.get(decoder):
            raise InputError(
                f"{path}: {encoder} {settings.get(encoder)} and {decoder} {settings.get(decoder)}"
                " differ: this program has one number for both"
            )
    activation = settings.get("activation_function", "gelu")
    if activation not in ACTIVATIONS:
        raise InputError(
            f"{path}: activation_function {activation!r}: expected {', '.join(ACTIVATIONS)}"
        )
    shared = settings.get("share_encoder_decoder_embeddings", True)
    source_size: int = settings["vocab_size"]
    target_size = source_size if shared else settings.get("decoder_vocab_size") or source_size
    added = 0 if start_is_ours else 1
    offset = family.options.get("position_offset", 0)
    if family.options.get("position_frequencies") and settings["pad_token_id"] + 1 != offset:
        raise InputError(f"{path}: pad_token_id {settings['pad_token_id']}: expected {offset - 1}")
    try:
        return config_of(
            path,
            source_vocab_size=source_size + added,
            target_vocab_size=target_size + added,
            d_model=settings["d_model"],
            num_heads=settings["encoder_attention_heads"],
            d_ff=settings["encoder_ffn_dim"],
            num_encoder_layers=settings["encoder_layers"],
            num_decoder_layers=settings["decoder_layers"],
            dropout=settings.get("dropout", 0.1),
            attention_dropout=settings.get("attention_dropout", 0.0),
            activation_dropout=settings.get("activation_dropout", 0.0),
            activation=ACTIVATIONS[activation],
            tying=tying_of(
                embeddings=bool(shared), target=bool(settings.get("tie_word_embeddings", True))
            ),
            output_bias=family.output_bias or not start_is_ours,
            scale_embeddings=settings.get("scale_embedding", False),
            max_length=settings["max_position_embeddings"],
            pad_id=settings["pad_token_id"],
            eos_id=settings["eos_token_id"],
            source_pad_id=settings.get("source_pad_token_id"),
            unk_id=settings["unk_token_id"],
            bos_id=settings["decoder_start_token_id"] if start_is_ours else target_size,
            **family.options,
        )
    except KeyError as error:
        raise InputError(f"{path}: {error.args[0]} is missing") from error


def length_penalty(settings: Mapping[str, Any]) -> float:
    """Our alpha for theirs: the same weight of one subword more in a sentence of 20.

    They divide by ``length ** alpha``, Wu et al. by ``((5 + length) / 6) ** alpha``. The slopes of
    the two logarithms, alpha / length and alpha / (5 + length), are to be one at that length.

    >>> length_penalty({"length_penalty": 1.0}), length_penalty({})
    (1.25, 1.25)
    """
    theirs = settings.get("length_penalty", 1.0)
    ours = theirs * (5 + _TYPICAL_LENGTH) / _TYPICAL_LENGTH
    return min(max(ours, 0.0), MOST_LENGTH_PENALTY)


def their_length_penalty(ours: float) -> float:
    """The inverse of :func:`length_penalty`.

    >>> their_length_penalty(0.6)
    0.48
    """
    return round(ours * _TYPICAL_LENGTH / (5 + _TYPICAL_LENGTH), 9)


def other_search_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Their search options that change translations and have no place in a bundle."""
    given = {name: settings[name] for name in _OTHERS if name in settings}
    return {n: value for n, value in given.items() if value not in (None, [], _OTHERS[n])}
