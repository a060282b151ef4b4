"""Reads a family's ``config.json`` as our settings; refuses an option without a counterpart."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from glassformer.config import BEAM, MOST_LENGTH_PENALTY, ModelConfig
from glassformer.data.tokenizer import Tokenizer
from glassformer.support.errors import InputError
from glassformer.support.strangers import read_json, shown, validated
from glassformer.tools.interchange.hugging_face.families import Family, family_of
from glassformer.tools.interchange.importing import tying_of

__all__ = [
    "ALIKE",
    "Settings",
    "length_penalty",
    "model_config",
    "other_search_options",
    "read_settings",
    "their_length_penalty",
]

_SAME_ACTIVATION = {"silu": "swish"}
_NO_EFFECT = {  # options of training, other tasks or the file, or without a use in transformers
    "_from_model_config", "_name_or_path", "_num_labels", "bos_token_id", "unk_token_id",
    "add_bias_logits", "add_cross_attention", "add_final_layer_norm", "architectures",
    "chunk_size_feed_forward", "classif_dropout", "classifier_dropout",
    "cross_attention_hidden_size", "decoder_layerdrop", "dtype", "encoder_layerdrop",
    "extra_pos_embeddings", "finetuning_task", "gradient_checkpointing", "id2label", "init_std",
    "is_decoder", "label2id", "normalize_before", "normalize_embedding", "num_labels",
    "num_return_sequences", "output_attentions", "output_hidden_states", "output_past",
    "output_scores", "prefix", "problem_type", "pruned_heads", "remove_invalid_values",
    "return_dict", "return_dict_in_generate", "save_step", "sep_token_id",
    "static_position_embeddings", "task_specific_params", "tf_legacy_loss", "tie_encoder_decoder",
    "tokenizer_class", "torch_dtype", "torchscript", "transformers_version", "use_bfloat16",
    "use_cache",
}  # fmt: skip
_SECOND_NAMES = {  # transformers reads each pair as one option
    "hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads",
    "num_hidden_layers": "encoder_layers",
}  # fmt: skip
_IDS = ("decoder_start_token_id", "eos_token_id", "pad_token_id")
_HELD = {"length_penalty", "early_stopping"}  # in another form
_OTHERS = {  # search options that a bundle does not hold, and the value of our search
    "num_beams": BEAM, "max_length": 20, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0, "min_length": 0, "do_sample": False, "num_beam_groups": 1,
    "diversity_penalty": 0.0, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "typical_p": 1.0,
    "exponential_decay_length_penalty": None, "suppress_tokens": None,
    "begin_suppress_tokens": None, "renormalize_logits": False, "max_new_tokens": None,
    "bad_words_ids": None, "forced_eos_token_id": None, "forced_bos_token_id": None,
}  # fmt: skip
_TYPICAL_LENGTH = 20  # subwords of a sentence


class Settings(BaseModel):
    """``config.json``, fields under our names; unknown fields stay in ``model_extra``."""

    model_config = ConfigDict(
        strict=True, extra="allow", frozen=True, allow_inf_nan=False, protected_namespaces=()
    )

    model_type: str
    vocab_size: int = Field(gt=0)
    decoder_vocab_size: int | None = None
    d_model: int
    num_heads: int = Field(alias="encoder_attention_heads")
    decoder_attention_heads: int
    d_ff: int = Field(alias="encoder_ffn_dim")
    decoder_ffn_dim: int
    num_encoder_layers: int = Field(alias="encoder_layers")
    num_decoder_layers: int = Field(alias="decoder_layers")
    activation: Literal["relu", "gelu", "swish", "silu"] = Field(
        "gelu", alias="activation_function"
    )
    scale_embeddings: bool = Field(False, alias="scale_embedding")
    max_length: int = Field(alias="max_position_embeddings")
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    pad_id: int = Field(alias="pad_token_id")
    eos_id: int = Field(alias="eos_token_id")
    start_id: int = Field(alias="decoder_start_token_id")
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True
    is_encoder_decoder: Literal[True] = True
    tokenizer_class: str | None = None
    length_penalty: float = 1.0

    @property
    def target_vocab_size(self) -> int:
        """The size of the target vocabulary."""
        size = None if self.share_encoder_decoder_embeddings else self.decoder_vocab_size
        return size or self.vocab_size


ALIKE = Settings.model_fields.keys() & ModelConfig.model_fields.keys()
"""The names of options that :class:`ModelConfig` has too."""


def read_settings(directory: Path) -> tuple[Family, Settings]:
    """The family and options of a directory, as transformers reads them.

    The search options stand in generation_config.json, or in config.json if there is no such file.

    Raises InputError for another family, an unknown option, or files that contradict each other.
    """
    path, generation = directory / "config.json", directory / "generation_config.json"
    if not path.exists():
        reason = "it holds no config.json" if directory.is_dir() else "no such directory"
        raise InputError(f"{directory}: not a directory of transformers ({reason})")
    settings = read_json(path, dict[str, Any])
    family = family_of(settings, path)
    read = {field.alias or name for name, field in Settings.model_fields.items()}
    known = read | _NO_EFFECT | _HELD | _OTHERS.keys()
    for name, value in settings.items():
        first = _SECOND_NAMES.get(name)
        if name not in known and value and (first is None or value != settings.get(first)):
            raise InputError(
                f"{path}: unknown option {name[:40]} {shown(value)}, which could change the"
                " translations: this program lacks it"
            )
    if generation.exists():
        options = read_json(generation, dict[str, Any])
        _check_ids(settings, options, generation)
        others = read - _HELD - {*_IDS}
        searching = {n: v for n, v in options.items() if n not in others and v is not None}
        own = {n: v for n, v in settings.items() if n not in _HELD | _OTHERS.keys()}
        settings = searching | {n: v for n, v in own.items() if v is not None or n not in _IDS}
    return family, validated({**family.defaults, **settings}, Settings, path)


def _check_ids(settings: dict[str, Any], options: dict[str, Any], generation: Path) -> None:
    """Refuse special tokens of generation_config.json that are not those of config.json.

    The search of transformers reads them in generation_config.json, and the model in config.json.
    """
    if options.get("decoder_start_token_id") is None:  # as transformers' search has it
        options["decoder_start_token_id"] = options.get("bos_token_id")
    for name in _IDS:
        model, search = settings.get(name), options.get(name)
        if model not in (None, search) and (name, search) != ("pad_token_id", None):
            raise InputError(
                f"{generation}: {name} {shown(search)}: config.json has {shown(model)}, and"
                " transformers searches with the first: copy both files from one model"
            )


def model_config(
    family: Family, settings: Settings, path: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> ModelConfig:
    """The settings for a model of ``family``.

    If the decoder starts with the start symbol of the target tokenizer, that symbol stays.
    Otherwise the vocabularies have one row more, for an added start symbol.

    Raises InputError, which names the file ``path``, for a value that no setting holds.
    """
    for name, ours in (("attention_heads", "num_heads"), ("ffn_dim", "d_ff")):
        encoder, decoder = getattr(settings, ours), getattr(settings, f"decoder_{name}")
        if encoder != decoder:
            raise InputError(
                f"{path}: encoder_{name} {encoder} and decoder_{name} {decoder} differ: this"
                " program has one number for both"
            )
    source, target = tokenizers
    start_is_ours = settings.start_id == target.bos_id
    added = 0 if start_is_ours else 1
    pad, offset = settings.pad_id, family.options.get("position_offset", 0)
    if family.options.get("position_frequencies") and pad + 1 != offset:
        raise InputError(f"{path}: pad_token_id {pad}: expected {offset - 1}")
    changes = {
        "source_vocab_size": settings.vocab_size + added,
        "target_vocab_size": settings.target_vocab_size + added,
        "activation": _SAME_ACTIVATION.get(settings.activation, settings.activation),
        "tying": tying_of(
            embeddings=settings.share_encoder_decoder_embeddings,
            target=settings.tie_word_embeddings,
        ),
        "output_bias": family.output_bias or not start_is_ours,
        "source_pad_id": None if source.pad_id == pad else source.pad_id,
        "unk_id": target.unk_id,
        "bos_id": target.bos_id if start_is_ours else settings.target_vocab_size,
    }
    alike = {name: getattr(settings, name) for name in ALIKE}
    return validated(alike | changes | dict(family.options), ModelConfig, path)


def length_penalty(theirs: float = 1.0) -> float:
    """The alpha of Wu et al. that acts like an alpha of transformers on 20 subwords.

    Transformers divides by ``length ** alpha``, Wu et al. by ``((5 + length) / 6) ** alpha``. At 20
    subwords the logarithms have equal slopes, alpha / length and alpha / (5 + length).

    >>> length_penalty()
    1.25
    """
    ours = theirs * (5 + _TYPICAL_LENGTH) / _TYPICAL_LENGTH
    return min(max(ours, 0.0), MOST_LENGTH_PENALTY)


def their_length_penalty(ours: float) -> float:
    """The inverse of :func:`length_penalty`.

    >>> their_length_penalty(0.6)
    0.48
    """
    return round(ours * _TYPICAL_LENGTH / (5 + _TYPICAL_LENGTH), 9)


def other_search_options(settings: Settings) -> dict[str, str]:
    """The search options of transformers that change translations and that no bundle holds."""
    ids = {"bad_words_ids": [[settings.pad_id]], "forced_eos_token_id": settings.eos_id}
    held = _NO_EFFECT | _HELD | _SECOND_NAMES.keys()
    if settings.model_type != "marian":
        held.add("forced_bos_token_id")  # the language, which the bundle forces
    options = {n: v for n, v in (settings.model_extra or {}).items() if n not in held}
    usual = {**dict.fromkeys(options), **_OTHERS, **ids}
    noted = {n: v for n, v in options.items() if v not in (None, [], usual[n])}
    return {name: shown(value) for name, value in noted.items() if value or name in _OTHERS}
