"""A bundle as a model directory of CTranslate2, an inference engine in C++ (extra ``export``).

The weights go where the tables below say, each exactly once. CTranslate2's Transformer
specification holds all that :class:`ModelConfig` has today: both norms and their epsilon, the three
activations, any table of positions, every tying, scaled embeddings or not, a norm of the
embeddings, an output bias. An option that this file does not know is refused, never dropped.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError, UsageError, nearest
from glassformer.interchange.ctranslate2.package import import_ctranslate2
from glassformer.model.positions import PositionalEncoding
from glassformer.model.transformer import Transformer

__all__ = [
    "QUANTIZATIONS",
    "check_quantization",
    "export_ctranslate2",
    "token_names",
]

QUANTIZATIONS = (
    "float32",
    "float16",
    "bfloat16",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
    "int16",
)

# Theirs: ours. Several of ours are stacked in this order.
_ENCODER_BLOCK = {
    "self_attention.layer_norm": ("self_attention.norm",),
    "self_attention.linear.0": (
        "self_attention.sublayer.query",
        "self_attention.sublayer.key",
        "self_attention.sublayer.value",
    ),
    "self_attention.linear.1": ("self_attention.sublayer.output",),
    "ffn.layer_norm": ("feed_forward.norm",),
    "ffn.linear_0": ("feed_forward.sublayer.inner",),
    "ffn.linear_1": ("feed_forward.sublayer.outer",),
}
_DECODER_BLOCK = _ENCODER_BLOCK | {
    "attention.layer_norm": ("cross_attention.norm",),
    "attention.linear.0": ("cross_attention.sublayer.query",),
    "attention.linear.1": ("cross_attention.sublayer.key", "cross_attention.sublayer.value"),
    "attention.linear.2": ("cross_attention.sublayer.output",),
}
_ENDS = {
    "encoder.embeddings.0": ("source_embedding",),
    "decoder.embeddings": ("target_embedding",),
    "decoder.projection": ("output",),
}
_NORMS_OF_EMBEDDINGS = {
    "encoder.layernorm_embedding": ("source_positions.norm",),
    "decoder.layernorm_embedding": ("target_positions.norm",),
}
_FINAL_NORMS = {"encoder.layer_norm": ("encoder.norm",), "decoder.layer_norm": ("decoder.norm",)}

_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH"}
# The options that the specification holds, as values or through the weights; training's leave no
# trace in a model that translates.
_HELD = {
    "source_vocab_size",
    "target_vocab_size",
    "d_model",
    "num_heads",
    "d_ff",
    "num_encoder_layers",
    "num_decoder_layers",
    "activation",
    "norm",
    "norm_epsilon",
    "tying",
    "output_bias",
    "scale_embeddings",
    "embedding_norm",
    "positions",
    "position_layout",
    "position_frequencies",
    "position_offset",
    "max_length",
    "pad_id",
    "unk_id",
    "bos_id",
    "eos_id",
}
_OF_TRAINING = {"dropout", "attention_dropout", "activation_dropout"}


def export_ctranslate2(bundle: Bundle, directory: Path, *, quantization: str = "float32") -> None:
    """Write ``bundle`` as a model of CTranslate2, with its tokenizers, into a new directory.

    ``ctranslate2.Translator(directory)`` takes and gives the tokenizers' pieces; it adds the start
    and end symbols itself. A kill on the way leaves no half-written ``directory``.

    Raises:
        UsageError: an unknown quantization, an option that CTranslate2 cannot hold, or a
            directory that is not empty.
        InputError: ctranslate2 is not installed, or a vocabulary has two pieces of one name.
    """
    check_quantization(quantization)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory}: there is something already; give a new directory")
    specification = _specification(bundle)
    specification.validate()
    specification.optimize(quantization=quantization)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=directory.parent) as beside:
        written = Path(beside, "model")
        written.mkdir()
        specification.save(os.fspath(written))
        bundle.source_tokenizer.save(written / "source.model")
        bundle.target_tokenizer.save(written / "target.model")
        if directory.exists():  # empty, as was checked
            directory.rmdir()
        written.rename(directory)


def check_quantization(quantization: str) -> None:
    """Raise UsageError for a kind of weights that CTranslate2 does not have."""
    if quantization not in QUANTIZATIONS:
        raise UsageError(
            f"quantization {quantization!r}: expected {', '.join(QUANTIZATIONS)}"
            f"{nearest(quantization, QUANTIZATIONS)}"
        )


def token_names(tokenizer: Tokenizer) -> list[str]:
    """The name of each id: its piece; the special ones are named by what they do.

    Raises InputError where two ids have one name: CTranslate2 could not tell them apart.
    """
    names = [tokenizer.subword(index) for index in range(tokenizer.vocab_size)]
    # Where one id has two duties, as in Marian, the last is what CTranslate2 asks for by name.
    for index, name in (
        (tokenizer.pad_id, "<pad>"),
        (tokenizer.unk_id, "<unk>"),
        (tokenizer.bos_id, "<s>"),
        (tokenizer.eos_id, "</s>"),
    ):
        names[index] = name
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"the tokenizer has two pieces named {twice!r}, which CTranslate2 cannot tell apart;"
            " use the torch engine"
        )
    return names


def _specification(bundle: Bundle) -> Any:
    """CTranslate2's own record of a model: what it has, and every weight of it."""
    specs = import_ctranslate2().specs
    model, config = bundle.model, bundle.model.config
    _refuse_unknown(config)
    common = {
        "pre_norm": config.norm == "pre",
        "activation": getattr(specs.common_spec.Activation, _ACTIVATIONS[config.activation]),
        "layernorm_embedding": config.embedding_norm,
    }
    specification = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.num_encoder_layers, config.num_heads, **common),
        specs.TransformerDecoderSpec(config.num_decoder_layers, config.num_heads, **common),
    )
    _place_weights(specification, config, _weights(model))
    for side, positions in (
        (specification.encoder, model.source_positions),
        (specification.decoder, model.target_positions),
    ):
        side.position_encodings.encodings = _position_rows(positions)
        side.scale_embeddings = config.scale_embeddings

    source, target = token_names(bundle.source_tokenizer), token_names(bundle.target_tokenizer)
    specification.register_source_vocabulary(source)
    specification.register_target_vocabulary(target)
    settings = specification.config
    settings.layer_norm_epsilon = config.norm_epsilon
    settings.add_source_eos = True
    settings.bos_token = target[bundle.target_tokenizer.bos_id]
    settings.decoder_start_token = settings.bos_token
    return specification


def _refuse_unknown(config: ModelConfig) -> None:
    fields = type(config).model_fields
    for name in fields.keys() - _HELD - _OF_TRAINING:
        value = getattr(config, name)
        if value != fields[name].default:
            raise UsageError(
                f"{name} {value!r}: CTranslate2's Transformer has no such option;"
                " use the torch engine"
            )


def _weights(model: Transformer) -> dict[str, Tensor]:
    """Ours by name, each tied one under all its names; without the positions."""
    weights = {
        name: weight for name, weight in model.state_dict().items() if not name.endswith(".table")
    }
    weights["output.weight"] = model.output_weight
    if model.output_bias is not None:
        weights["output.bias"] = weights.pop("output_bias")
    return weights


def _place_weights(specification: Any, config: ModelConfig, weights: dict[str, Tensor]) -> None:
    """Each weight of ours to its place; none may be left over.

    Tied weights are placed twice and stored once: CTranslate2 finds them out.
    """
    weights = dict(weights)
    for theirs, ours in _table(config).items():
        layer = _at(specification, theirs)
        for kind in ("weight", "bias"):
            names = [f"{name}.{kind}" for name in ours if f"{name}.{kind}" in weights]
            if names:
                found = torch.cat([weights.pop(name) for name in names])
                setattr(layer, _field(layer, kind), found.cpu())
    if weights:
        raise UsageError(
            f"{min(weights)}: CTranslate2's Transformer has no place for such weights;"
            " use the torch engine"
        )


def _table(config: ModelConfig) -> dict[str, tuple[str, ...]]:
    """Theirs: ours, for all that a model of this config has."""
    table: dict[str, tuple[str, ...]] = {**_ENDS}
    if config.embedding_norm:
        table |= _NORMS_OF_EMBEDDINGS
    if config.norm == "pre":
        table |= _FINAL_NORMS
    for side, depth, block in (
        ("encoder", config.num_encoder_layers, _ENCODER_BLOCK),
        ("decoder", config.num_decoder_layers, _DECODER_BLOCK),
    ):
        for i in range(depth):
            table |= {
                f"{side}.layer.{i}.{theirs}": tuple(f"{side}.blocks.{i}.{name}" for name in ours)
                for theirs, ours in block.items()
            }
    return table


def _at(specification: Any, path: str) -> Any:
    """The layer at ``encoder.layer.0.ffn``: names of attributes, places in lists."""
    for word in path.split("."):
        specification = specification[int(word)] if word.isdigit() else getattr(specification, word)
    return specification


def _field(layer: Any, kind: str) -> str:
    return {"weight": "gamma", "bias": "beta"}[kind] if hasattr(layer, "gamma") else kind


def _position_rows(positions: Any) -> Tensor:
    """What is added to the first token, the second, …; sines as a table, so each layout fits."""
    encoding: PositionalEncoding = getattr(positions, "positions", positions)
    return encoding.table.detach()[encoding.offset :].cpu()
