"""Hugging Face's ``generate`` with the weights of one of our bundles.

A post-norm bundle becomes a ``MarianMTModel``, a pre-norm bundle an
``M2M100ForConditionalGeneration``: the same blocks with the norm elsewhere. Our table of positions
replaces theirs, so that each layout of sines and cosines gives the same model.
"""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import (
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
)

from benchmarks.peers.measure import job
from benchmarks.peers.translating import time_translation

__all__ = ["converted", "load"]

# Our part of a name and theirs, replaced in this order.
NAMES = (
    (".blocks.", ".layers."),
    ("self_attention.norm", "self_attn_layer_norm"),
    ("cross_attention.norm", "encoder_attn_layer_norm"),
    ("feed_forward.norm", "final_layer_norm"),
    ("feed_forward.sublayer.inner", "fc1"),
    ("feed_forward.sublayer.outer", "fc2"),
    ("self_attention.sublayer.", "self_attn."),
    ("cross_attention.sublayer.", "encoder_attn."),
    (".query.", ".q_proj."),
    (".key.", ".k_proj."),
    (".value.", ".v_proj."),
    (".output.", ".out_proj."),
    ("coder.norm.", "coder.layer_norm."),  # behind a pre-norm stack
)


def converted(directory: Path) -> nn.Module:
    """Their model with the weights of the bundle in ``directory``."""
    config = json.loads((directory / "config.json").read_text("utf-8"))["model"]
    wanted = {"tying": "three-way", "positions": "sinusoidal", "embedding_norm": False}
    for name, value in wanted.items():
        if config[name] != value:
            raise SystemExit(f"Hugging Face has no model with {name} {config[name]}")
    post = config["norm"] == "post"
    if config["output_bias"] and not post:
        raise SystemExit("Hugging Face has no pre-norm model with an output bias")
    settings = _settings(config)
    model = (
        MarianMTModel(MarianConfig(**settings))
        if post
        else M2M100ForConditionalGeneration(M2M100Config(**settings))
    )
    ours = load_file(directory / "model.safetensors")
    weights: dict[str, Tensor] = {"model.shared.weight": ours.pop("source_embedding.weight")}
    if "output_bias" in ours:
        weights["final_logits_bias"] = ours.pop("output_bias")[None]
    for name, weight in ours.items():
        weights[f"model.{_renamed(name)}"] = weight
    left = model.load_state_dict(weights, strict=False)
    known = ("embed_tokens", "embed_positions", "lm_head", "final_logits_bias")
    lost = [name for name in left.missing_keys if not any(part in name for part in known)]
    if lost or left.unexpected_keys:
        raise SystemExit(f"weights without a place: {lost} {left.unexpected_keys}")
    _place_positions(model, config, post=post)
    return model.eval()


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    settings = {
        "vocab_size": config["source_vocab_size"],
        "d_model": config["d_model"],
        "activation_function": config["activation"],
        "scale_embedding": config["scale_embeddings"],
        "max_position_embeddings": config["max_length"],
        "pad_token_id": config["pad_id"],
        "bos_token_id": config["bos_id"],
        "eos_token_id": config["eos_id"],
        "decoder_start_token_id": config["bos_id"],
        "forced_eos_token_id": None,
    }
    for side in ("encoder", "decoder"):
        settings[f"{side}_layers"] = config[f"num_{side}_layers"]
        settings[f"{side}_attention_heads"] = config["num_heads"]
        settings[f"{side}_ffn_dim"] = config["d_ff"]
    return settings


def _renamed(name: str) -> str:
    for ours, theirs in NAMES:
        name = name.replace(ours, theirs)
    return name


def _place_positions(model: nn.Module, config: dict[str, Any], *, post: bool) -> None:
    table = _positions(config)
    for stack in (model.model.encoder, model.model.decoder):
        if post:
            stack.embed_positions.weight.data = table
        else:  # their rows begin after the padding's
            first = config["pad_id"] + 1
            stack.embed_positions.weights = torch.cat((torch.zeros(first, table.size(1)), table))


def _positions(config: dict[str, Any]) -> Tensor:
    """Section 3.5's table, or tensor2tensor's, in either layout."""
    width = config["d_model"]
    pairs = torch.arange(width // 2, dtype=torch.float64)
    over = width / 2 if config["position_frequencies"] == "paper" else width / 2 - 1
    rates = torch.exp(-math.log(10000.0) * pairs / over)
    places = torch.arange(config["max_length"], dtype=torch.float64) + config["position_offset"]
    angles = places[:, None] * rates
    parts = (angles.sin(), angles.cos())
    if config["position_layout"] == "halves":
        return torch.cat(parts, dim=-1).float()
    return torch.stack(parts, dim=-1).flatten(1).float()


def load() -> Callable[[Sequence[list[int]]], list[list[int]]]:
    """A function from ids to ids; sentences of like length together, the longest first."""
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(job["threads"])
    dtype = torch.bfloat16 if job["compute"] == "bf16" else torch.float32
    model = converted(Path(job["bundle"])).to(device=job["device"], dtype=dtype)
    pad, end = model.config.pad_token_id, model.config.eos_token_id

    def translate_batch(sources: list[list[int]]) -> list[list[int]]:
        ended = [torch.tensor([*tokens, end]) for tokens in sources]
        ids = nn.utils.rnn.pad_sequence(ended, batch_first=True, padding_value=pad)
        translations = model.generate(
            input_ids=ids.to(job["device"]),
            attention_mask=(ids != pad).long().to(job["device"]),
            num_beams=job["beam"],
            do_sample=False,
            length_penalty=0.0,
            max_new_tokens=ids.size(1) + job["extra"],
        )
        rows = translations.tolist()
        return [[token for token in row[1:] if token not in (pad, end)] for row in rows]

    def translate(sources: Sequence[list[int]]) -> list[list[int]]:
        order = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
        outputs: list[list[int]] = [[] for _ in sources]
        for begin in range(0, len(order), job["batch"]):
            places = order[begin : begin + job["batch"]]
            translations = translate_batch([sources[place] for place in places])
            for place, translation in zip(places, translations, strict=True):
                outputs[place] = translation
        return outputs

    return torch.inference_mode()(translate)


if __name__ == "__main__":
    time_translation(load, "ids", library=f"transformers {transformers.__version__}")
