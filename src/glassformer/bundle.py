"""A bundle: one directory that holds one translator, without pickled files.

The directory has ``config.json`` (with ``format_version``), ``model.safetensors``,
``tokenizer.model`` (or ``source.model`` and ``target.model``), and ``README.md``. ``config.json``
holds the SHA-256 of the weights, of the tokenizers, and of its own settings.

A bundle may come from a stranger, or from a damaged disk: :mod:`glassformer.support.strangers`
reads it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field, field_validator

from glassformer.config import LENGTH_PENALTY, MOST_LENGTH_PENALTY, ModelConfig
from glassformer.data.known import Known
from glassformer.data.normaliser import Normalisation
from glassformer.data.preprocessing import Preprocessing, SourceLengths
from glassformer.data.tokenizer import MOST_BYTES, Tokenizer
from glassformer.data.trigrams import Profile
from glassformer.model.transformer import Transformer
from glassformer.support.errors import ChecksumError, InputError, UsageError
from glassformer.support.files import write_atomically
from glassformer.support.hashes import check_hashes, sha256
from glassformer.support.languages import LanguageTokens, standard_code
from glassformer.support.strangers import parsed_json, read_bytes, read_tensors
from glassformer.support.tensors import load_weights, save_tensors, shapes_of, unfilled, weights

__all__ = [
    "MOST_EXAMPLES",
    "PARTS_RECORD",
    "Bundle",
    "check_bundle",
    "fact_text",
    "facts",
    "load_bundle",
    "save_bundle",
]

FORMAT_VERSION = 3
"""The version that this program writes and reads."""
MOST_EXAMPLES = 3
"""The greatest number of example texts in a bundle; the web pages offer the texts."""
PARTS_RECORD = Path("parts", "parts.json")
"""The file in which ``glassformer learn train`` records who wrote each part of a model."""
_CONFIG = "config.json"
_MOST_CONFIG_BYTES = 16 << 20


@dataclass(frozen=True)
class Bundle:
    """A model with its tokenizers; ``about`` describes its training, for people to read."""

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    languages: tuple[str, str] | None = None
    about: Mapping[str, object] = field(default_factory=dict)
    alignment: Mapping[str, object] | None = None  # the fields of `alignment.align.Heads`
    length_penalty: float = LENGTH_PENALTY  # alpha of section 6.1
    normalisation: Normalisation = "none"  # how training and translation normalise sources
    source_lengths: SourceLengths | None = None  # of training; None if nobody measured
    known: Known | None = None  # counts of training; None if nobody counted
    trigrams: tuple[str, str] | None = None  # profiles of the training's two languages
    language_tokens: LanguageTokens | None = None  # None unless the model is multilingual
    examples: tuple[str, ...] = ()  # web pages offer them; only the demo writes any
    parts: Mapping[str, str] = field(default_factory=dict)  # names of the user's own parts

    def between(self, source: str | None, target: str | None) -> "Bundle":
        """The bundle for another pair of languages; a side that is None keeps its language.

        This method raises UsageError for a language that the model does not know.
        """
        of_source, of_target = self.languages or (None, None)
        if self.language_tokens is None:
            for side, asked, code in (("source", source, of_source), ("target", target, of_target)):
                if asked is not None and code not in (asked, standard_code(asked)):
                    pair = ", " + " to ".join(self.languages) if self.languages else ""
                    raise UsageError(
                        f"{asked!r}: this translator has one pair{pair}: leave it out",
                        argument=f"{side}_language",
                    )
            return self
        if source is None and target is None:
            return self
        first, second = self.language_tokens.pair(source or of_source, target or of_target)
        prefixes = self.language_tokens.prefixes(first, second)
        return replace(
            self,
            source_tokenizer=self.source_tokenizer.with_prefix(prefixes[0]),
            target_tokenizer=self.target_tokenizer.with_prefix(prefixes[1]),
            languages=(first, second) if first else None,
        )

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of languages that :meth:`between` takes, its own pair first."""
        own = self.languages or ("source", "target")
        if self.language_tokens is None:
            return [own]
        codes = list(self.language_tokens.subwords)
        sources = codes if self.language_tokens.before == "each" else [own[0]]
        others = [pair for pair in product(sources, codes) if pair[0] != pair[1]]
        return list(dict.fromkeys([self.languages or others[0], *others]))

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return self.source_tokenizer, self.target_tokenizer

    @property
    def preprocessing(self) -> Preprocessing:
        """The rules that cut texts into the segments that the model reads."""
        known = self.known
        if known is None and self.source_lengths:
            known = Known.of_tokenizers(*self.tokenizers)
        return Preprocessing(self.normalisation, self.languages, self.source_lengths, known)


# The fields of a bundle that ``config.json`` holds unchanged.
_AS_IT_IS = {field.name for field in fields(Bundle)}
_AS_IT_IS -= {"model", "source_tokenizer", "target_tokenizer"}


class _StoredConfig(BaseModel):
    """The content of ``config.json``."""

    model_config = ConfigDict(allow_inf_nan=False, extra="forbid", frozen=True)

    format_version: int
    languages: tuple[str, str] | None
    joint: bool  # one tokenizer for both sides
    model: ModelConfig
    source_prefix: tuple[str, ...] = ()  # subwords before every source
    target_prefix: tuple[str, ...] = ()
    source_known: int | None = None  # `known` of a Tokenizer
    target_known: int | None = None
    length_penalty: float = Field(ge=0, le=MOST_LENGTH_PENALTY)
    normalisation: Normalisation
    source_lengths: SourceLengths | None = None
    known: Known | None = None
    trigrams: tuple[Profile, Profile] | None = None
    language_tokens: LanguageTokens | None = None
    examples: tuple[str, ...] = Field((), max_length=MOST_EXAMPLES)
    parts: dict[str, str] = {}
    about: dict[str, object]
    alignment: dict[str, object] | None = None
    sha256: dict[str, str]  # hash of each file, and of the settings in this record

    @property
    def tokenizer_files(self) -> tuple[str, str]:
        """The names of the source tokenizer's file and of the target tokenizer's file."""
        return ("tokenizer.model",) * 2 if self.joint else ("source.model", "target.model")

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the tokenizer and weight files."""
        return *dict.fromkeys(self.tokenizer_files), "model.safetensors"

    @field_validator("format_version")
    @classmethod
    def _is_known(cls, version: int) -> int:
        if version != FORMAT_VERSION:
            remedy = "update glassformer" if version > FORMAT_VERSION else "train or import it anew"
            raise ValueError(f"{version}, but this glassformer reads {FORMAT_VERSION}: {remedy}")
        return version


def save_bundle(bundle: Bundle, directory: Path) -> None:
    """Write a bundle; if the process is killed, each file is whole, old or new.

    This function writes the config last. So a directory with a ``config.json`` is a whole bundle.
    """
    directory.mkdir(parents=True, exist_ok=True)
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    config = _StoredConfig(
        format_version=FORMAT_VERSION,
        joint=source.serialized == target.serialized,
        model=bundle.model.config,
        source_prefix=source.prefix,
        target_prefix=target.prefix,
        source_known=source.known,
        target_known=target.known,
        sha256={},
        **{name: getattr(bundle, name) for name in _AS_IT_IS},
    )
    readme, tensors = _readme(bundle).encode(), weights(bundle.model)
    save_tensors(tensors, directory / "model.safetensors")
    for tokenizer, name in zip(bundle.tokenizers, config.tokenizer_files, strict=True):
        write_atomically(directory / name, tokenizer.serialized)
    write_atomically(directory / "README.md", readme)
    config.sha256.update({name: sha256(directory / name) for name in config.files})
    config.sha256[_CONFIG] = _settings_hash(config.model_dump(mode="json"))
    write_atomically(directory / _CONFIG, (config.model_dump_json(indent=2) + "\n").encode())


def check_bundle(directory: Path) -> None:
    """Raise InputError if there is no bundle in ``directory``."""
    if (directory / _CONFIG).exists():
        return
    reason = "no such directory"
    if directory.exists():
        reason = "it holds no config.json" if directory.is_dir() else "a file: give its directory"
    raise InputError(f"{directory}: not a bundle ({reason})")


def load_bundle(
    directory: Path,
    *,
    device: torch.device | str = "cpu",
    verify: bool = True,
    build: Callable[[ModelConfig], Transformer] = Transformer,
    own: Mapping[str, str] = MappingProxyType({}),
) -> Bundle:
    """Read a bundle with its model in evaluation mode; an InputError names a faulty file.

    ``build`` makes the model, and ``own`` names the user's own parts. ``Parts`` has ``build`` and
    ``own`` as attributes. A bundle of a training with own parts needs parts of equal names.

    ``verify`` compares each file, and the settings, with the hashes in ``config.json``. A
    difference raises ChecksumError.
    """
    config = _read_config(directory, verify=verify)
    names = config.tokenizer_files
    files = {name: read_bytes(directory / name, most_bytes=MOST_BYTES) for name in names}
    if verify:
        check_hashes(directory, config.files, config.sha256, remedy="copy the bundle anew")
    source_tokenizer, target_tokenizer = _tokenizers(config, files, directory)
    path = directory / "model.safetensors"
    for part, name in config.parts.items():
        if own.get(part) != name:
            part = repr(f"{part} {name}")  # a stranger's text
            raise InputError(
                f"{directory} was trained with {part}: give parts with that name (in Python), or"
                " train anew with the package's parts"
            )
    model = unfilled(lambda: build(config.model))
    shapes = shapes_of(model)
    try:
        load_weights(model, read_tensors(path, shapes), path)
    except InputError as error:
        given = "".join(f" (with {part} {name})" for part, name in own.items())
        raise type(error)(f"{error}{given}") from error
    return Bundle(
        model.to(device).eval().requires_grad_(False),
        source_tokenizer,
        target_tokenizer,
        **{name: getattr(config, name) for name in _AS_IT_IS},
    )


def _read_config(directory: Path, *, verify: bool) -> _StoredConfig:
    path = directory / _CONFIG
    check_bundle(directory)
    content = read_bytes(path, most_bytes=_MOST_CONFIG_BYTES)
    config = parsed_json(content, _StoredConfig, path)
    settings = parsed_json(content, dict[str, Any], path)
    model = config.model
    if missing := type(model).model_fields.keys() - model.model_fields_set:
        raise InputError(
            f"{path}: model.{min(missing)} is missing, and a default could mean another model:"
            " copy the bundle anew"
        )
    if verify and settings["sha256"].get(_CONFIG) != _settings_hash(settings):
        raise ChecksumError(
            f"{path}: checksum mismatch: the file is changed or damaged: copy the bundle anew"
        )
    return config


def _settings_hash(settings: dict[str, Any]) -> str:
    """The SHA-256 of settings without the settings' hash; white space and order change nothing."""
    hashes = {name: value for name, value in settings["sha256"].items() if name != _CONFIG}
    text = json.dumps(settings | {"sha256": hashes}, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode())


def _tokenizers(
    config: _StoredConfig, files: Mapping[str, bytes], directory: Path
) -> tuple[Tokenizer, Tokenizer]:
    """Source and target tokenizer; InputError if a vocabulary or symbol is not the model's."""

    def tokenizer(name: str, prefix: tuple[str, ...], known: int | None) -> Tokenizer:
        return Tokenizer(files[name], name=str(directory / name), prefix=prefix, known=known)

    source_file, target_file = config.tokenizer_files
    source = tokenizer(source_file, config.source_prefix, config.source_known)
    target = tokenizer(target_file, config.target_prefix, config.target_known)
    ids = {name: getattr(target, name) for name in ("pad_id", "unk_id", "bos_id", "eos_id")}
    sizes = {"source_vocab_size": source.vocab_size, "target_vocab_size": target.vocab_size}
    for name, value in {**sizes, **ids, "pad_of_source": source.pad_id}.items():
        if (wanted := getattr(config.model, name)) != value:
            raise InputError(
                f"{directory}: {name} is {wanted} in the model and {value} in its tokenizer: copy"
                " the bundle anew"
            )
    return source, target


def facts(bundle: Bundle) -> list[str]:
    """Size, data and scores of a translator, as Markdown list items for people to read."""
    config = bundle.model.config
    count = sum(weight.numel() for weight in bundle.model.parameters())
    return [
        f"- size: {count:,} parameters; d_model {config.d_model}, {config.num_heads} heads,"
        f" {config.num_encoder_layers}+{config.num_decoder_layers} blocks",
        f"- vocabulary: {config.source_vocab_size:,} source, {config.target_vocab_size:,} target",
        *(f"- {name}: {fact_text(value)}" for name, value in bundle.about.items()),
    ]


def _readme(bundle: Bundle) -> str:
    """The bundle's README.md: its languages, size, data and scores."""
    direction = " to ".join(bundle.languages) if bundle.languages else "source to target"
    maker = "import" if "imported from" in bundle.about else "train"
    lines = [
        f"# A translator, {direction}",
        "",
        f"Made by `glassformer {maker}`; use it with `glassformer translate DIRECTORY < text`.",
        "",
        *facts(bundle),
    ]
    return "\n".join(lines) + "\n"


def fact_text(value: object) -> str:
    """A value of ``about`` as text for people."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({text})" for name, text in value.items())
    return " · ".join(map(str, value)) if isinstance(value, list) else str(value)
