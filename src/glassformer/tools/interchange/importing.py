"""Parts of several bridges: the result of an import, its languages, ties, layers and rows."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.support.languages import standard_code

__all__ = ["NEVER", "Imported", "in_languages", "layers_of", "tying_of", "with_rows"]

NEVER = -1e4
"""The bias of a symbol that is added: its probability is 0, and half precision can hold it."""


@dataclass(frozen=True)
class Imported:
    """A translator of others as a bundle, its family, and notes for a person to read."""

    bundle: Bundle
    family: str
    notes: tuple[str, ...] = ()


def tying_of(*, embeddings: bool, target: bool) -> str:
    """Our word for matrices that are one: both embeddings; target embedding and output.

    >>> tying_of(embeddings=True, target=False)
    'embeddings'
    """
    if embeddings:
        return "three-way" if target else "embeddings"
    return "target" if target else "none"


def layers_of(config: ModelConfig) -> list[tuple[str, int]]:
    """Side and number of each block, in the order of a file."""
    depths = {"encoder": config.num_encoder_layers, "decoder": config.num_decoder_layers}
    return [(side, layer) for side, depth in depths.items() for layer in range(depth)]


def in_languages(bundle: Bundle, source: str | None, target: str | None) -> Bundle:
    """The bundle for a pair of languages, if it is known; UsageError if a model needs it."""
    if bundle.language_tokens:
        bundle.language_tokens.pair(source, target)
        return bundle.between(source, target)
    if source and target:
        return replace(bundle, languages=(standard_code(source), standard_code(target)))
    return bundle


def with_rows(table: Tensor, added: int, start: tuple[int, int | None]) -> Tensor:
    """A vocabulary's table with rows for symbols that a file lacks; a bias makes them improbable.

    ``start``: the row of our start symbol, and that of theirs, which it copies if it is added.
    """
    rows = table.new_zeros(added, *table.shape[1:])
    ours, theirs = start
    if table.dim() == 1:
        rows += NEVER
    elif theirs is not None and ours >= len(table):
        rows[ours - len(table)] = table[theirs]
    return torch.cat([table, rows])
