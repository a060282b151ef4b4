"""The families of translators, with their options and the names of their weights.

The decoders of M2M100, NLLB and mBART start with the end symbol. Marian's decoder starts with
padding, which our decoder hides. So import adds a row for a start symbol to Marian's vocabulary.
The row copies the padding's row, with the bias ``NEVER``, so that all other probabilities stay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from glassformer.config import ModelConfig, Tying
from glassformer.support.errors import InputError, UsageError
from glassformer.support.strangers import shown
from glassformer.tools.interchange.importing import layers_of

__all__ = ["FAMILIES", "Family", "family_for", "family_of", "weight_table"]


@dataclass(frozen=True)
class Family:
    """One architecture; ``options`` are settings of ModelConfig that all its models share."""

    title: str
    architecture: str
    """The class in transformers."""
    options: Mapping[str, Any]
    output_bias: bool = True
    """Whether the files have ``final_logits_bias``."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Options of config.json that transformers takes for missing ones, if they are not Marian's."""
    stored_sinusoids: bool = False
    """Whether the files have the table of sinusoids, which other families compute."""


FAMILIES = {
    "marian": Family("MarianMT", "MarianMTModel", {"position_layout": "halves"}),
    "m2m_100": Family(
        "M2M100 or NLLB",
        "M2M100ForConditionalGeneration",
        {
            "norm": "pre",
            "position_layout": "halves",
            "position_frequencies": "tensor2tensor",
            "position_offset": 2,
        },
        output_bias=False,
        defaults={"scale_embedding": True, "activation_function": "relu"},
    ),
    "mbart": Family(
        "mBART",
        "MBartForConditionalGeneration",
        {"norm": "pre", "positions": "learned", "position_offset": 2, "embedding_norm": True},
    ),
    "pegasus": Family(
        "Pegasus",
        "PegasusForConditionalGeneration",
        {"norm": "pre", "position_layout": "halves"},
        stored_sinusoids=True,
    ),
}
"""The families by ``model_type``. An option that is not here has ModelConfig's default."""
_TRANSLATORS = ("marian", "m2m_100", "mbart")

# The layout of sinusoids is not here, as a permutation of d_model changes the layout.
_STRUCTURE = (
    "norm",
    "embedding_norm",
    "positions",
    "position_frequencies",
    "position_offset",
)

_REASONS = {
    "t5": "it has relative positions and RMS norms",
    "mt5": "it has relative positions and RMS norms",
    "umt5": "it has relative positions and RMS norms",
    "nllb-moe": "its feed-forward networks are mixtures of experts",
    "fsmt": "its tokenizer is Moses with fastBPE, not SentencePiece",
    "bart": "its tokenizer is byte-level BPE, not SentencePiece",
    "blenderbot": "its tokenizer is byte-level BPE, not SentencePiece",
}

# Transformers' name -> our name, in each block of the encoder and of the decoder.
_ATTENTION = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
_ENCODER_BLOCK = {
    **{f"self_attn.{theirs}": f"self_attention.sublayer.{o}" for theirs, o in _ATTENTION.items()},
    "self_attn_layer_norm": "self_attention.norm",
    "fc1": "feed_forward.sublayer.inner",
    "fc2": "feed_forward.sublayer.outer",
    "final_layer_norm": "feed_forward.norm",  # the norm of a block, not of the stack
}
_DECODER_BLOCK = {
    **_ENCODER_BLOCK,
    **{
        f"encoder_attn.{theirs}": f"cross_attention.sublayer.{o}"
        for theirs, o in _ATTENTION.items()
    },
    "encoder_attn_layer_norm": "cross_attention.norm",
}
_FINAL_NORMS = {
    "model.encoder.layer_norm": "encoder.norm",
    "model.decoder.layer_norm": "decoder.norm",
}
_NORMS_OF_EMBEDDINGS = {
    "model.encoder.layernorm_embedding": "source_positions.norm",
    "model.decoder.layernorm_embedding": "target_positions.norm",
}
_SIDES = (("encoder", "source"), ("decoder", "target"))


def family_of(settings: Mapping[str, Any], origin: object) -> Family:
    """The family of a ``config.json``; InputError, with the file ``origin``, if no family has it.

    >>> family_of({"model_type": "llama"}, "config.json")
    Traceback (most recent call last):
    glassformer.support.errors.InputError: config.json: model_type 'llama': a language model \
without an encoder: translate with it elsewhere, and train here on its translations; import reads \
marian, m2m_100, mbart
    """
    model_type = settings.get("model_type")
    name = model_type if isinstance(model_type, str) else ""
    if name in FAMILIES:
        return FAMILIES[name]
    if name in _REASONS:
        reason = _REASONS[name]
    elif not settings.get("is_encoder_decoder"):
        reason = (
            "a language model without an encoder: translate with it elsewhere, and train here on"
            " its translations"
        )
    elif "auto_map" in settings:
        reason = "its model and tokenizer are its own code, and import runs no code of others"
    else:
        reason = "import has no table of its weights yet: take a model of another type"
    listed = ", ".join(_TRANSLATORS)
    raise InputError(f"{origin}: model_type {shown(model_type)}: {reason}; import reads {listed}")


def family_for(config: ModelConfig) -> str:
    """The ``model_type`` whose structure a model has; UsageError if none has it.

    >>> sizes = {"source_vocab_size": 9, "target_vocab_size": 9}
    >>> family_for(ModelConfig(**sizes)), family_for(ModelConfig(**sizes, norm="pre"))
    ('marian', 'pegasus')
    """
    fields = ModelConfig.model_fields
    wanted = {name: getattr(config, name) for name in _STRUCTURE}
    for name, family in FAMILIES.items():
        if all(
            family.options.get(option, fields[option].default) == value
            for option, value in wanted.items()
        ):
            return name
    listed = ", ".join(f"{name} {value!r}" for name, value in wanted.items())
    raise UsageError(
        f"no family of Hugging Face combines {listed}: export to ctranslate2, which can hold it"
    )


def weight_table(config: ModelConfig) -> dict[str, str | None]:
    """Our name of each weight by transformers' name; None if import does not read the weight.

    A tied weight stands in a file under one or several names.
    """
    embeddings = _embeddings(config.tying)
    modules = dict(embeddings)
    if config.embedding_norm:
        modules |= _NORMS_OF_EMBEDDINGS
    if config.norm == "pre":
        modules |= _FINAL_NORMS
    blocks = {"encoder": _ENCODER_BLOCK, "decoder": _DECODER_BLOCK}
    for side, layer in layers_of(config):
        modules |= {
            f"model.{side}.layers.{layer}.{theirs}": f"{side}.blocks.{layer}.{ours}"
            for theirs, ours in blocks[side].items()
        }
    table: dict[str, str | None] = {
        f"{theirs}.{kind}": f"{ours}.{kind}"
        for theirs, ours in modules.items()
        for kind in ("weight", "bias")
        if kind == "weight" or theirs not in embeddings
    }
    inner = "positions.table" if config.embedding_norm else "table"
    for theirs, ours in _SIDES:
        learned = config.positions == "learned"
        table[f"model.{theirs}.embed_positions.weight"] = (
            f"{ours}_positions.{inner}" if learned else None  # computed
        )
        table[f"model.{theirs}.embed_positions.weights"] = None  # computed, in old M2M100 files
    table["final_logits_bias"] = "output_bias"
    return table


def _embeddings(tying: Tying) -> dict[str, str]:
    shared = tying in ("three-way", "embeddings")
    target = "source_embedding" if shared else "target_embedding"
    return {
        **({"model.shared": target} if shared else {}),
        "model.encoder.embed_tokens": "source_embedding",
        "model.decoder.embed_tokens": target,
        "lm_head": target if tying in ("three-way", "target") else "output",
    }
