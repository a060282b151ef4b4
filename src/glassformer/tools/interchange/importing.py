"""Functions that several importers and exporters share."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.support.languages import standard_code

__all__ = ["NEVER", "Imported", "in_languages", "layers_of", "tying_of", "with_rows"]

NEVER = -1e4
"""The bias of an added symbol, which gives the probability 0 and fits into half precision."""


@dataclass(frozen=True)
class Imported:
    """An imported translator as a bundle, its family, and notes to print."""

    bundle: Bundle
    family: str
    notes: tuple[str, ...] = ()


def tying_of(*, embeddings: bool, target: bool) -> str:
    """The ``tying`` of a model, from the matrices that share weights.

    ``embeddings`` joins source and target embedding; ``target`` joins target embedding and output.

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
    """The bundle for a known pair of languages; UsageError if a multilingual model gets no pair."""
    if bundle.language_tokens:
        bundle.language_tokens.pair(source, target)
        return bundle.between(source, target)
    if source and target:
        return replace(bundle, languages=(standard_code(source), standard_code(target)))
    return bundle


def with_rows(table: Tensor, added: int, start: tuple[int, int | None]) -> Tensor:
    """A vocabulary's table with rows for added symbols; a bias gives them the probability 0.

    ``start`` has the id of the start symbol, and the id whose row an added start symbol copies.
    """
    rows = table.new_zeros(added, *table.shape[1:])
    start_id, copied = start
    if table.dim() == 1:
        rows += NEVER
    elif copied is not None and start_id >= len(table):
        rows[start_id - len(table)] = table[copied]
    return torch.cat([table, rows])
