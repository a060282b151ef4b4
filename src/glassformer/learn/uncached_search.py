"""A search without a cache: each step decodes the whole target once more.

The package's search decodes one position a step, by methods named ``step`` that no lesson builds.
This search calls what training calls. So a mistake there acts in translation as in training.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.model.cache import Memory
from glassformer.model.transformer import Transformer

__all__ = ["NOT_IN_STEP", "uncached_search"]

NOT_IN_STEP = frozenset(
    {
        "model.decoder.Decoder.forward",
        "model.decoder.DecoderBlock.forward",
        "model.masks.subsequent_mask",
        "model.masks.target_mask",
        "model.transformer.Transformer.decode",
    }
)
"""The places of lessons that training calls for the target, and ``step`` does not."""


@dataclass(frozen=True)
class Prefixes:
    """The target tokens so far, and the memory."""

    tokens: Int[Tensor, "rows tgt_len"]
    memory: Memory

    def select(self, rows: Int[Tensor, " selected"]) -> "Prefixes":
        memory = Memory(self.memory.states[rows], self.memory.mask[rows])
        return Prefixes(self.tokens[rows], memory)


def start(_model: Transformer, memory: Memory) -> Prefixes:
    return Prefixes(torch.empty(len(memory.states), 0, dtype=torch.long), memory)


def step(
    model: Transformer, tokens: Int[Tensor, " rows"], state: Prefixes
) -> tuple[Float[Tensor, "rows vocab"], Prefixes]:
    tokens = torch.cat((state.tokens, tokens[:, None]), dim=1)
    states = model.decode(tokens, state.memory)
    return model.project(states[:, -1]), Prefixes(tokens, state.memory)


@contextmanager
def uncached_search() -> Iterator[None]:
    """In this block every plain model searches without a cache."""
    with patch.multiple(Transformer, start=start, step=step):
        yield
