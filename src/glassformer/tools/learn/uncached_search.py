"""A search without a KV cache, in which each step decodes the target from its beginning.

The package's search decodes one position a step, by methods named ``step`` that no lesson builds.
The uncached search calls the methods of training, so their mistakes act in translation too.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.model.cache import Memory
from glassformer.model.transformer import Transformer

__all__ = ["NOT_IN_STEP", "Uncached"]

NOT_IN_STEP = frozenset(
    {
        "model.decoder.Decoder.forward",
        "model.decoder.DecoderBlock.forward",
        "model.masks.subsequent_mask",
        "model.masks.target_mask",
        "model.transformer.Transformer.decode",
    }
)
"""The functions of lessons that training calls for the target, but the methods ``step`` do not."""


@dataclass(frozen=True)
class Prefixes:
    """The target tokens so far, and the memory."""

    tokens: Int[Tensor, "rows tgt_len"]
    memory: Memory

    def select(self, rows: Int[Tensor, " selected"]) -> "Prefixes":
        memory = Memory(self.memory.states[rows], self.memory.mask[rows])
        return Prefixes(self.tokens[rows], memory)


@dataclass(frozen=True)
class Uncached:
    """A model without a KV cache; each step decodes the target from its beginning."""

    model: Transformer

    def encode(self, source: Int[Tensor, "batch src_len"]) -> Memory:
        return self.model.encode(source)

    def start(self, memory: Memory) -> Prefixes:
        return Prefixes(torch.empty(len(memory.states), 0, dtype=torch.long), memory)

    def step(
        self, tokens: Int[Tensor, " rows"], state: Prefixes
    ) -> tuple[Float[Tensor, "rows vocab"], Prefixes]:
        tokens = torch.cat((state.tokens, tokens[:, None]), dim=1)
        states = self.model.decode(tokens, state.memory)
        return self.model.project(states[:, -1]), Prefixes(tokens, state.memory)
