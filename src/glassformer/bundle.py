"""A translator on disk: one directory, nothing in it pickled.

``config.json`` (with ``format_version``), ``model.safetensors``, ``tokenizer.model`` (or
``source.model`` and ``target.model``), ``README.md``, and where it was asked for
``shortlist.safetensors``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from glassformer.config import LENGTH_PENALTY, MOST_LENGTH_PENALTY, ModelConfig
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError
from glassformer.files import write_atomically
from glassformer.model.transformer import Transformer

__all__ = [
    "FORMAT_VERSION",
    "SHORTLIST_FILE",
    "Bundle",
    "load_bundle",
    "load_tensors",
    "load_weights",
    "save_bundle",
    "weights",
]

FORMAT_VERSION = 1
SHORTLIST_FILE = "shortlist.safetensors"


@dataclass(frozen=True)
class Bundle:
    """A model with its tokenizers; ``about`` is what its config.json says of its training."""

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    languages: tuple[str, str] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    shortlist: Mapping[str, Tensor] | None = None  # as `decoding.shortlist` reads it
    alignment: Mapping[str, Any] | None = None  # as `inspection.alignment` reads it
    length_penalty: float = LENGTH_PENALTY  # alpha of section 6.1, where nobody says another


def save_bundle(bundle: Bundle, directory: Path) -> None:
    """Write a bundle; a kill on the way leaves each file whole, old or new.

    The config is written last: a directory with a ``config.json`` is a whole bundle.
    """
    directory.mkdir(parents=True, exist_ok=True)
    joint = bundle.source_tokenizer.fingerprint == bundle.target_tokenizer.fingerprint
    if joint:
        bundle.source_tokenizer.save(directory / "tokenizer.model")
    else:
        bundle.source_tokenizer.save(directory / "source.model")
        bundle.target_tokenizer.save(directory / "target.model")
    write_atomically(directory / "model.safetensors", save(weights(bundle.model)))
    if bundle.shortlist is not None:
        write_atomically(directory / SHORTLIST_FILE, save(dict(bundle.shortlist)))
    else:
        (directory / SHORTLIST_FILE).unlink(missing_ok=True)
    write_atomically(directory / "README.md", _card(bundle).encode())
    config = {
        "format_version": FORMAT_VERSION,
        "languages": bundle.languages,
        "joint": joint,
        "model": bundle.model.config.model_dump(),
        "length_penalty": bundle.length_penalty,
        "about": dict(bundle.about),
    }
    if bundle.alignment is not None:
        config["alignment"] = dict(bundle.alignment)
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    write_atomically(directory / "config.json", text.encode())


def load_bundle(directory: Path, *, device: torch.device | str = "cpu") -> Bundle:
    """Read a bundle, ready to translate (in evaluation mode); each fault is named by its file."""
    path = directory / "config.json"
    try:
        stored = json.loads(path.read_bytes())
        version = stored["format_version"]
        if version != FORMAT_VERSION:
            raise InputError(
                f"{path}: format_version {version}, but this glassformer reads {FORMAT_VERSION}"
            )
        config = ModelConfig(**stored["model"])
        joint, languages, about = stored["joint"], stored["languages"], stored["about"]
        alignment = stored.get("alignment")
        length_penalty = stored.get("length_penalty", LENGTH_PENALTY)
        if not 0 <= length_penalty <= MOST_LENGTH_PENALTY:  # of a text: TypeError
            raise InputError(
                f"{path}: length_penalty {length_penalty}: expected 0 to {MOST_LENGTH_PENALTY:g}"
            )
    except FileNotFoundError as error:
        known = "no such directory" if not directory.is_dir() else "it holds no config.json"
        raise InputError(f"{directory}: not a bundle ({known})") from error
    except ValidationError as error:
        reason = error.errors()[0]
        where = ".".join(map(str, reason["loc"]))
        raise InputError(f"{path}: {where} {reason['msg']}".replace("  ", " ")) from error
    except (OSError, KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a bundle's config ({error!r})") from error

    names = ("tokenizer.model",) * 2 if joint else ("source.model", "target.model")
    source_tokenizer, target_tokenizer = (Tokenizer.load(directory / name) for name in names)
    model = Transformer(config)
    load_weights(model, load_tensors(directory / "model.safetensors"), directory)
    for side, tokenizer, size in (
        ("source", source_tokenizer, config.source_vocab_size),
        ("target", target_tokenizer, config.target_vocab_size),
    ):
        if tokenizer.vocab_size != size:
            raise InputError(
                f"{directory}: the {side} tokenizer has {tokenizer.vocab_size} tokens"
                f" and the model {size}"
            )
    model.to(device).eval().requires_grad_(False)
    languages = tuple(languages) if languages else None
    path = directory / SHORTLIST_FILE
    shortlist = load_tensors(path) if path.exists() else None
    tokenizers = source_tokenizer, target_tokenizer
    return Bundle(model, *tokenizers, languages, about, shortlist, alignment, length_penalty)


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Each parameter once, by its name: tied ones under the first of their names."""
    return {name: weight.detach().contiguous() for name, weight in model.named_parameters()}


def load_weights(model: nn.Module, stored: Mapping[str, Tensor], origin: Path) -> None:
    """Copy ``stored`` into the model's parameters; names and shapes must be the same."""
    own = dict(model.named_parameters())
    if missing := own.keys() - stored.keys():
        raise InputError(f"{origin}: the weights lack {min(missing)} ({len(missing)} missing)")
    if unknown := stored.keys() - own.keys():
        raise InputError(f"{origin}: unknown weights {min(unknown)} ({len(unknown)} unknown)")
    with torch.no_grad():
        for name, weight in own.items():
            if weight.shape != stored[name].shape:
                raise InputError(
                    f"{origin}: {name} has shape {tuple(stored[name].shape)},"
                    f" expected {tuple(weight.shape)}"
                )
            weight.copy_(stored[name])


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or an error that names it."""
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: cannot be read as safetensors ({error})") from error


def _card(bundle: Bundle) -> str:
    """The bundle's README.md: what it is, from what, and how good."""
    direction = " to ".join(bundle.languages) if bundle.languages else "source to target"
    config = bundle.model.config
    count = sum(weight.numel() for weight in bundle.model.parameters())
    lines = [
        f"# A translator, {direction}",
        "",
        "Made by `glassformer train`; use it with `glassformer translate DIRECTORY < text`.",
        "",
        f"- size: {count:,} parameters; d_model {config.d_model}, {config.num_heads} heads,"
        f" {config.num_encoder_layers}+{config.num_decoder_layers} blocks",
        f"- vocabulary: {config.source_vocab_size:,} source, {config.target_vocab_size:,} target",
    ]
    lines += [f"- {name}: {value}" for name, value in bundle.about.items()]
    return "\n".join(lines) + "\n"
