"""Exports a bundle to CTranslate2, an inference engine in C++ (extra ``export``).

The tables below give each weight of CTranslate2's specification the names of our parameters, each
exactly once. The specification holds every option of :class:`ModelConfig`: norms, epsilon,
activations, table of positions, tying, scale and norm of embeddings, and output bias.

The export refuses a parameter without a place, and drops none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.tokenizer import Tokenizer
from glassformer.model.forms import NormedPositions
from glassformer.model.positions import PositionalEncoding
from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError, UsageError, check_choice
from glassformer.support.files import new_directory, refuse_full_directory
from glassformer.tools.interchange.ctranslate2.package import import_ctranslate2
from glassformer.tools.interchange.importing import layers_of
from glassformer.tools.interchange.stock import require_stock

if TYPE_CHECKING:
    from ctranslate2.specs import LayerSpec, TransformerSpec

__all__ = [
    "QUANTIZATIONS",
    "encoding_of",
    "export_ctranslate2",
    "module_table",
    "token_names",
    "weights_by_name",
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

# CTranslate2's name of a weight -> the names of our weights that the weight stacks, in order.
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


def export_ctranslate2(bundle: Bundle, directory: Path, *, quantization: str = "float32") -> None:
    """Write ``bundle`` as a model of CTranslate2, with its tokenizers, into a new directory.

    ``ctranslate2.Translator(directory)`` reads and returns the tokenizers' subwords, and adds start
    and end symbols. A killed export leaves no ``directory``.

    Raises:
        UsageError: the quantization is unknown, CTranslate2 has no place for a weight, the
            directory is not empty, or the model has own parts.
        InputError: ctranslate2 is not installed, or two subwords of a vocabulary have one name.
    """
    check_choice("quantization", quantization, QUANTIZATIONS)
    refuse_full_directory(directory)
    require_stock(bundle, "CTranslate2")
    specification = _specification(bundle)
    specification.validate()
    specification.optimize(quantization=quantization)
    with new_directory(directory) as model:
        specification.save(os.fspath(model))
        bundle.source_tokenizer.save(model / "source.model")
        bundle.target_tokenizer.save(model / "target.model")


def token_names(tokenizer: Tokenizer) -> list[str]:
    """The name of each id: the subword, or for example ``</s>`` for a special id.

    Raises InputError if two ids have one name, because CTranslate2 finds tokens by name.
    """
    names = [tokenizer.subword(index) for index in range(tokenizer.vocab_size)]
    # Marian has one id for padding and start. Later names win, as CTranslate2 needs <s> and </s>.
    for index, name in (
        (tokenizer.pad_id, "<pad>"),
        (tokenizer.unk_id, "<unk>"),
        (tokenizer.bos_id, "<s>"),
        (tokenizer.eos_id, "</s>"),
    ):
        names[index] = name
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"the tokenizer has two subwords named {duplicate!r}, which CTranslate2 cannot tell"
            " apart; use the torch engine"
        )
    return names


def _specification(bundle: Bundle) -> TransformerSpec:
    """CTranslate2's specification of a model: its options and all its weights."""
    specs = import_ctranslate2().specs
    model, config = bundle.model, bundle.model.config
    common = {
        "pre_norm": config.norm == "pre",
        "activation": getattr(specs.common_spec.Activation, config.activation.upper()),
        "layernorm_embedding": config.embedding_norm,
    }
    specification = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.num_encoder_layers, config.num_heads, **common),
        specs.TransformerDecoderSpec(config.num_decoder_layers, config.num_heads, **common),
    )
    _place_weights(specification, model)
    for side, positions in (
        (specification.encoder, model.source_positions),
        (specification.decoder, model.target_positions),
    ):
        encoding = encoding_of(positions)  # all rows are stored, so that any layout fits
        side.position_encodings.encodings = encoding.table.detach()[encoding.offset :].cpu()
        side.scale_embeddings = config.scale_embeddings

    source, target = token_names(bundle.source_tokenizer), token_names(bundle.target_tokenizer)
    specification.register_source_vocabulary(source)
    specification.register_target_vocabulary(target)
    settings = specification.config
    settings.layer_norm_epsilon = config.norm_epsilon
    # If padding is the end symbol in sources, the model has not learnt from an end symbol.
    settings.add_source_eos = config.pad_of_source != config.eos_id
    settings.bos_token = target[bundle.target_tokenizer.bos_id]
    settings.decoder_start_token = settings.bos_token
    return specification


def weights_by_name(model: Transformer) -> dict[str, Tensor]:
    """The model's weights by name, without positions; a tied weight has several names."""
    weights = {
        name: weight for name, weight in model.state_dict().items() if not name.endswith(".table")
    }
    weights["output.weight"] = model.output_weight
    if model.output_bias is not None:
        weights["output.bias"] = weights.pop("output_bias")
    return weights


def _place_weights(specification: TransformerSpec, model: Transformer) -> None:
    """Put every weight of the model into the specification; UsageError if a weight is left over.

    A tied weight has two places in the specification, and CTranslate2 stores it once.
    """
    weights = weights_by_name(model)
    for path, modules in module_table(model.config).items():
        layer = _at(specification, path)
        for kind, of_norm in (("weight", "gamma"), ("bias", "beta")):
            names = [f"{name}.{kind}" for name in modules if f"{name}.{kind}" in weights]
            if names:
                stacked = torch.cat([weights.pop(name) for name in names])
                setattr(layer, of_norm if hasattr(layer, of_norm) else kind, stacked.cpu())
    if weights:
        raise UsageError(
            f"CTranslate2's Transformer has no weight like {min(weights)}: use the torch engine"
        )


def module_table(config: ModelConfig) -> dict[str, tuple[str, ...]]:
    """The names of our modules by CTranslate2's name, for a model of ``config``."""
    table: dict[str, tuple[str, ...]] = {**_ENDS}
    if config.embedding_norm:
        table |= _NORMS_OF_EMBEDDINGS
    if config.norm == "pre":
        table |= _FINAL_NORMS
    blocks = {"encoder": _ENCODER_BLOCK, "decoder": _DECODER_BLOCK}
    for side, i in layers_of(config):
        table |= {
            f"{side}.layer.{i}.{path}": tuple(f"{side}.blocks.{i}.{name}" for name in modules)
            for path, modules in blocks[side].items()
        }
    return table


def _at(specification: TransformerSpec, path: str) -> LayerSpec:
    """The layer at a path of attributes and list indices, such as ``encoder.layer.0.ffn``."""
    for key in path.split("."):
        specification = specification[int(key)] if key.isdigit() else getattr(specification, key)
    return specification


def encoding_of(positions: nn.Module) -> PositionalEncoding:
    """The positional encoding of a side, without the norm after it."""
    encoding = positions.positions if isinstance(positions, NormedPositions) else positions
    assert isinstance(encoding, PositionalEncoding)
    return encoding
