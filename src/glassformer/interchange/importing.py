"""Parts of every importer: files of JSON, our settings from theirs, and the result."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.errors import InputError

__all__ = ["NEVER", "Imported", "config_of", "parsed_json", "read_json", "tying_of"]

NEVER = -1e4
"""The bias of a symbol that is added: its probability is 0, and half precision can hold it."""


@dataclass(frozen=True)
class Imported:
    """A translator of others as a bundle, its family, and notes for a person to read."""

    bundle: Bundle
    family: str
    notes: tuple[str, ...] = ()


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; InputError names the file."""
    content = parsed_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected an object of names and values")
    return content


def parsed_json(path: Path) -> object:
    """The content of a JSON file; InputError names the file."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON, or cut short ({error}): copy it anew") from error


def config_of(path: Path, **settings: object) -> ModelConfig:
    """Our settings; InputError for a value out of its range names the file ``path`` they are of."""
    try:
        return ModelConfig.model_validate(settings)
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(map(str, fault["loc"]))
        message = fault["msg"].removeprefix("Value error, ")
        raise InputError(f"{path}: {name} {message}".replace(":  ", ": ")) from error


def tying_of(*, embeddings: bool, target: bool) -> str:
    """Our word for matrices that are one: both embeddings; target embedding and output.

    >>> tying_of(embeddings=True, target=False)
    'embeddings'
    """
    if embeddings:
        return "three-way" if target else "embeddings"
    return "target" if target else "none"
