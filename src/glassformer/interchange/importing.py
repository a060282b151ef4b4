"""Parts of every importer: our settings from theirs, and the result."""

from dataclasses import dataclass
from pathlib import Path

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.strangers import validated

__all__ = ["NEVER", "Imported", "config_of", "tying_of"]

NEVER = -1e4
"""The bias of a symbol that is added: its probability is 0, and half precision can hold it."""


@dataclass(frozen=True)
class Imported:
    """A translator of others as a bundle, its family, and notes for a person to read."""

    bundle: Bundle
    family: str
    notes: tuple[str, ...] = ()


def config_of(path: Path, **settings: object) -> ModelConfig:
    """Our settings; InputError for a value out of its range names the file ``path`` they are of."""
    return validated(settings, ModelConfig, path)


def tying_of(*, embeddings: bool, target: bool) -> str:
    """Our word for matrices that are one: both embeddings; target embedding and output.

    >>> tying_of(embeddings=True, target=False)
    'embeddings'
    """
    if embeddings:
        return "three-way" if target else "embeddings"
    return "target" if target else "none"
