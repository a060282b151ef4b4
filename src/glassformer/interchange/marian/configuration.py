"""Marian's options to our settings, and a place for each of its weights."""

from pydantic import ValidationError

from glassformer.config import ModelConfig
from glassformer.errors import InputError
from glassformer.interchange.marian.model_file import MarianFile
from glassformer.interchange.tokens import Tokens

__all__ = ["model_config", "weight_table"]

_NORMS: dict[
    tuple[str, ...], str
] = {  # what stands before a sublayer, after it, and on top of a stack
    ("", "dan", ""): "post",
    ("n", "da", "n"): "pre",
}
_AFTER_EMBEDDING = {"": False, "d": False, "n": True, "nd": True}
# The options without a counterpart: the value that this program has, and what another one means.
_REFUSED = {
    "type": ("transformer", "an architecture of its own"),
    "transformer-decoder-autoreg": ("self-attention", "a recurrent decoder (SSRU or RNN) or AAN"),
    "transformer-no-projection": (False, "attention without an output matrix"),
    "transformer-tied-layers": ([], "blocks that are one"),
    "right-left": (False, "targets from right to left"),
}
_ACTIVATIONS = ("relu", "swish")
_REASONS = {
    "Wpos": "it has learned positions of Marian's kind",
    "relative": "it has relative positions",
    "rnn": "it has a recurrent decoder",
}
_MOST_POSITIONS = 1024  # Marian computes as many as a text needs

# Marian's name -> ours, in each block; "W" is a matrix and "b" its bias.
_ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "output"}
_SIDES = {
    "encoder": {"self": "self_attention"},
    "decoder": {"self": "self_attention", "context": "cross_attention"},
}


def model_config(file: MarianFile, source: Tokens, target: Tokens) -> ModelConfig:
    """Our settings; InputError for an option without a counterpart."""
    for name, (expected, meaning) in _REFUSED.items():
        value = file.option(name, expected)
        if value != expected:
            raise InputError(
                f"{file.path}: {name} {value!r}: {meaning}; this program has {expected!r} only"
            )
    processing = ("preprocess", "postprocess", "postprocess-top")
    norms = tuple(str(file.option(f"transformer-{name}", "")) for name in processing)
    after = str(file.option("transformer-postprocess-emb", "d"))
    activation = file.option("transformer-ffn-activation")
    for name, value, known in (
        ("transformer-preprocess, -postprocess, -postprocess-top", norms, _NORMS),
        ("transformer-postprocess-emb", after, _AFTER_EMBEDDING),
        ("transformer-ffn-activation", activation, _ACTIVATIONS),  # its gelu is by a sigmoid
    ):
        if value not in known:
            raise InputError(
                f"{file.path}: {name} {value!r}: expected {' or '.join(map(repr, known))}"
            )
    embeddings = [_embedding(file, side) for side in _SIDES]
    names = {(True, True): "three-way", (True, False): "embeddings", (False, True): "target"}
    try:
        return ModelConfig(
            source_vocab_size=len(source.texts),
            target_vocab_size=len(target.texts),
            d_model=file.weights[embeddings[0]].shape[1],
            num_heads=file.option("transformer-heads"),
            d_ff=file.option("transformer-dim-ffn"),
            num_encoder_layers=_depth(file, "encoder", "enc-depth"),
            num_decoder_layers=_depth(file, "decoder", "dec-depth"),
            activation=activation,
            norm=_NORMS[norms],
            embedding_norm=_AFTER_EMBEDDING[after],
            tying=names.get((embeddings[0] == embeddings[1], _output(file) is None), "none"),
            output_bias=True,
            position_layout="halves",
            max_length=_MOST_POSITIONS,
            source_pad_id=source.id_of("pad") if source.texts != target.texts else None,
            **{f"{symbol}_id": target.id_of(symbol) for symbol in ("pad", "unk", "bos", "eos")},
        )
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(map(str, fault["loc"]))
        message = fault["msg"].removeprefix("Value error, ")
        raise InputError(f"{file.path}: {name} {message}".replace(":  ", ": ")) from error


def weight_table(file: MarianFile, config: ModelConfig) -> dict[str, str]:
    """Their name of each weight, and ours; InputError for a weight of unknown use."""
    modules: dict[str, str] = {}
    pre = "_pre" if config.norm == "pre" else ""
    table = {"decoder_ff_logit_out_b": "output.bias"}
    for side, attentions in _SIDES.items():
        depth = config.num_encoder_layers if side == "encoder" else config.num_decoder_layers
        for layer in range(depth):
            theirs, ours = f"{side}_l{layer + 1}", f"{side}.blocks.{layer}"
            for name, attention in attentions.items():
                for letter, part in _ATTENTION.items():
                    modules[f"{theirs}_{name}_{{}}{letter}"] = f"{ours}.{attention}.sublayer.{part}"
                _add_norm(table, f"{theirs}_{name}_Wo_ln", f"{ours}.{attention}.norm", pre)
            for number, part in (("1", "inner"), ("2", "outer")):
                modules[f"{theirs}_ffn_{{}}{number}"] = f"{ours}.feed_forward.sublayer.{part}"
            _add_norm(table, f"{theirs}_ffn_ffn_ln", f"{ours}.feed_forward.norm", pre)
        sided = "source" if side == "encoder" else "target"
        table[_embedding(file, side)] = f"{sided}_embedding.weight"
        if config.norm == "pre":
            _add_norm(table, f"{side}_top_ln", f"{side}.norm", "")
        if config.embedding_norm:
            _add_norm(table, f"{side}_emb_ln", f"{sided}_positions.norm", "_pre")
    for theirs, ours in modules.items():
        table |= {theirs.format("W"): f"{ours}.weight", theirs.format("b"): f"{ours}.bias"}
    output = _output(file)
    if output is not None:
        table[output] = "output.weight"
    for name in file.weights:
        if name not in table:
            reason = next((text for part, text in _REASONS.items() if part in name), "no place")
            raise InputError(f"{file.path}: unknown weight {name}: {reason}; it is not imported")
    return table


def _add_norm(table: dict[str, str], theirs: str, ours: str, suffix: str) -> None:
    table[f"{theirs}_scale{suffix}"] = f"{ours}.weight"
    table[f"{theirs}_bias{suffix}"] = f"{ours}.bias"


def _depth(file: MarianFile, side: str, option: str) -> int:
    """The number of blocks, which the weights and an option say."""
    depth = 0
    while f"{side}_l{depth + 1}_ffn_W1" in file.weights:
        depth += 1
    if depth != file.option(option):
        raise InputError(
            f"{file.path}: {option} {file.option(option)}, and {depth} blocks have weights: copy"
            " it anew"
        )
    return depth


def _embedding(file: MarianFile, side: str) -> str:
    """The name of a side's embedding: its own, or that of both."""
    for name in (f"{side}_Wemb", "Wemb"):
        if name in file.weights and file.weights[name].dim() == 2:
            return name
    raise InputError(f"{file.path}: it lacks the weight {side}_Wemb: copy it anew")


def _output(file: MarianFile) -> str | None:
    """The name of the output matrix; None: it is the target's embedding."""
    names = ("decoder_ff_logit_out_W", "decoder_ff_logit_out_Wt")
    return next((name for name in names if name in file.weights), None)
