"""Reads the options of a CTranslate2 model as our settings; refuses an option without a setting."""

import math
from collections.abc import Collection
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, get_args

import torch

from glassformer.config import Frequencies, Layout, ModelConfig
from glassformer.model.positions import sinusoidal_positions
from glassformer.support.errors import InputError
from glassformer.support.strangers import read_json, shown, validated
from glassformer.tools.interchange.ctranslate2.reading.model_file import ModelFile
from glassformer.tools.interchange.ctranslate2.reading.tokens import Settings, Tokens
from glassformer.tools.interchange.importing import tying_of

__all__ = ["matrix_shape", "model_config", "read_settings", "refuse_others", "source_embedding"]

_HEADS = {"TransformerSpec": 8, "TransformerBase": 8, "TransformerBig": 16}  # without num_heads
_ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu"}
_OTHER_ACTIVATIONS = {1: "GELU by tanh", 4: "GELU by a sigmoid", 5: "tanh", 6: "sigmoid"}
_NO_EFFECT = {"multi_query_attention"}  # options of config.json; the shapes of the weights decide
_EPSILON = 1e-5  # CTranslate2's default
_COMPUTED_POSITIONS = {  # CTranslate2's positions for a file without any
    "position_layout": "halves",
    "position_frequencies": "tensor2tensor",
    "position_offset": 1,
    "max_length": 1024,
}
# Options by the last part of the name. Harmless options change no translation; others must be 0.
_HARMLESS = {
    "activation", "alibi_use_positive_positions", "alignment_heads", "alignment_layer",
    "embeddings_merge", "num_heads", "pre_norm", "scale_alibi", "scale_embeddings",
    "multiply_by_sqrt_depth", "start_from_zero_embedding", "with_source_bos", "with_source_eos",
    "with_target_bos", "user_decoder_start_tokens",
}  # fmt: skip
_OFF = {"alibi", "multi_query_attention", "layer_norm_use_residual"}
_REASONS = {
    "relative": "it has relative positions, and this program has positions in the embeddings only",
    "rotary": "it has rotary positions, and this program has positions in the embeddings only",
    "alibi": "it has ALiBi positions, and this program has positions in the embeddings only",
    "linear_0_noact": "its feed-forward networks are gated",
    "embeddings_1": "its tokens have features",
}
_CLOSE = 5e-3  # tolerance for tables that other programs compute in single or half precision
TARGET_EMBEDDING, OUTPUT = "decoder/embeddings/weight", "decoder/projection/weight"
_LAYOUTS: tuple[Layout, ...] = get_args(Layout)
_FREQUENCIES: tuple[Frequencies, ...] = get_args(Frequencies)
_MOST_OFFSET = 3


def read_settings(directory: Path, file: ModelFile) -> Settings:
    """The options of ``config.json``, or of an old ``model.bin``.

    Raises InputError for another specification, or an option without a counterpart.
    """
    if file.specification not in _HEADS:
        raise InputError(
            f"{file.path}: {shown(file.specification)}: expected TransformerSpec, an encoder with"
            " a decoder"
        )
    path = directory / "config.json"
    settings = read_json(path, Settings) if path.exists() else Settings()
    changes: dict[str, object] = {}
    if file.version < 6:
        flags = {name: file.option(f"with_{name}") for name in ("source_bos", "source_eos")}
        changes |= {f"add_{name}": bool(value) for name, value in flags.items()}
        begins = file.option("with_target_bos", 1)
        start = settings.bos_token if begins else settings.eos_token
        asked = file.option("user_decoder_start_tokens")
        changes["decoder_start_token"] = None if asked else start
    for name, value in (settings.model_extra or {}).items():
        if name not in _NO_EFFECT and value:
            raise InputError(
                f"{path}: unknown option {name[:40]} {shown(value)}: this program lacks it"
            )
    # The converter that writes a float converts models whose tokenizers add the end symbol.
    if isinstance(file.option("encoder/scale_embeddings"), float):
        changes["add_source_eos"] = True
    settings = settings.model_copy(update=changes)
    if settings.add_source_bos:
        raise InputError(
            f"{path}: add_source_bos is true, but this program puts no start symbol before a source"
        )
    if settings.decoder_start_token is None:
        raise InputError(
            f"{path}: decoder_start_token null: write the token there that all targets start with;"
            " mBART-50's is </s>"
        )
    return settings


def model_config(file: ModelFile, settings: Settings, sides: tuple[Tokens, Tokens]) -> ModelConfig:
    """The settings for the model in ``file``; InputError for a value that no setting holds."""
    both = {side: _stack(file, side) for side in ("encoder", "decoder")}
    depths = [stack.pop("depth") for stack in both.values()]
    encoder, decoder = both.values()
    for name, value in encoder.items():
        if value != decoder[name] and name != "max_length":
            raise InputError(
                f"{file.path}: {name} {value} of the encoder and {decoder[name]} of the decoder"
                " differ: this program has one for both"
            )
    _, d_model = matrix_shape(file, TARGET_EMBEDDING)
    d_ff, _ = matrix_shape(file, "encoder/layer_0/ffn/linear_0/weight")
    longest = encoder.pop("max_length")
    source, target = sides
    pads = source.id_of("pad"), target.id_of("pad")
    changes = {
        "source_vocab_size": len(source.texts),
        "target_vocab_size": len(target.texts),
        "d_model": d_model,
        "d_ff": d_ff,
        "num_encoder_layers": depths[0],
        "num_decoder_layers": depths[1],
        "norm_epsilon": settings.layer_norm_epsilon or _EPSILON,
        "tying": tying_of(
            embeddings=file.same(source_embedding(file), TARGET_EMBEDDING),
            target=file.same(TARGET_EMBEDDING, OUTPUT),
        ),
        "output_bias": len(target.texts) > target.size or "decoder/projection/bias" in file.stored,
        "source_max_length": longest if longest != decoder["max_length"] else None,
        "source_pad_id": pads[0] if pads[0] != pads[1] else None,
    }
    ids = {f"{symbol}_id": target.id_of(symbol) for symbol in ("pad", "unk", "bos", "eos")}
    return validated(decoder | changes | ids, ModelConfig, file.path)


def _stack(file: ModelFile, side: str) -> dict[str, Any]:
    """The options of the encoder or the decoder."""
    activation = int(file.option(f"{side}/activation"))
    if activation not in _ACTIVATIONS:
        theirs = _OTHER_ACTIVATIONS.get(activation, activation)
        raise InputError(
            f"{file.path}: unknown activation {theirs}: expected {', '.join(_ACTIVATIONS.values())}"
        )
    depth = 0
    while f"{side}/layer_{depth}/ffn/linear_0/weight" in file.stored:
        depth += 1
    heads = file.option(f"{side}/num_heads", _HEADS[file.specification])
    return {
        "depth": depth,
        "activation": _ACTIVATIONS[activation],
        "num_heads": int(heads),
        "norm": "pre" if file.option(f"{side}/pre_norm", 1) else "post",
        "scale_embeddings": _is_scaled(file, side),
        "embedding_norm": f"{side}/layernorm_embedding/gamma" in file.stored,
        **_positions(file, side),
    }


def _is_scaled(file: ModelFile, side: str) -> bool:
    """Whether sqrt(d_model) multiplies the embeddings.

    An integer is a switch. A floating-point number is the factor, so that 1.0 means no.
    """
    switch = file.option(f"{side}/embeddings/multiply_by_sqrt_depth", 1)  # in old files
    scale = file.option(f"{side}/scale_embeddings", switch)
    root = math.sqrt(matrix_shape(file, TARGET_EMBEDDING)[1])
    if isinstance(scale, float) and scale != 1 and not math.isclose(scale, root, rel_tol=_CLOSE):
        raise InputError(f"{file.path}: scale_embeddings {scale:g}: expected 1 or {root:g}")
    return scale != 1 if isinstance(scale, float) else bool(scale)


def _positions(file: ModelFile, side: str) -> dict[str, Any]:
    """The settings of the positions: known sinusoids, or else a learned table."""
    name = f"{side}/position_encodings/encodings"
    if name not in file.stored:
        return _COMPUTED_POSITIONS
    length, d_model = matrix_shape(file, name)
    table = file.weight(name)
    kinds = product(_LAYOUTS, _FREQUENCIES, range(_MOST_OFFSET + 1)) if d_model % 2 == 0 else ()
    for layout, frequencies, offset in kinds:
        sinusoids = partial(
            sinusoidal_positions, layout=layout, frequencies=frequencies, offset=offset
        )
        if all(torch.allclose(t, sinusoids(*t.shape), atol=_CLOSE) for t in (table[:8], table)):
            return {
                "max_length": length,
                "position_layout": layout,
                "position_frequencies": frequencies,
                "position_offset": offset,
            }
    # A converter leaves out the first two rows of mBART's table, which nothing reads.
    offset = 2 if f"{side}/layernorm_embedding/gamma" in file.stored else 0
    return {"max_length": length, "positions": "learned", "position_offset": offset}


def source_embedding(file: ModelFile) -> str:
    """The name of the source embedding, which has a number in older files."""
    old = "encoder/embeddings/weight"
    return old if old in file.stored else "encoder/embeddings_0/weight"


def matrix_shape(file: ModelFile, name: str) -> tuple[int, int]:
    """The rows and columns of a weight; InputError if the file has no such matrix."""
    if name not in file.stored:
        raise InputError(f"{file.path}: the weight {name} is missing: copy the file anew")
    shape = tuple(file.stored[name].shape)
    if len(shape) != 2:
        raise InputError(f"{file.path}: {name} has the shape {shape}, expected rows and columns")
    return shape


def refuse_others(file: ModelFile, known: Collection[str]) -> None:
    """Raise InputError for a variable that has an effect and is not in ``known``."""
    for name, values in file.stored.items():
        last = name.rpartition("/")[2]
        off = last in _OFF and values.numel() == 1 and not values.item()
        if name in known or name.removesuffix("_scale") in known or last in _HARMLESS or off:
            continue
        reasons = [reason for part, reason in _REASONS.items() if part in name]
        reason = reasons[0] if reasons else "no model of this program has such a weight"
        raise InputError(f"{file.path}: {name}: {reason}")
