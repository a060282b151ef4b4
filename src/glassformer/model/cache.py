"""Memory and state: the encoder's output, and the decoder's key-value cache."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["BlockState", "DecoderState", "Memory", "check_rows"]


@dataclass(frozen=True)
class Memory:
    """The encoder's output: the encoder's states, and the mask that hides padding.

    >>> memory = Memory(torch.zeros(2, 7, 8), torch.ones(2, 1, 1, 7, dtype=torch.bool))
    >>> memory.states.shape
    torch.Size([2, 7, 8])
    """

    states: Float[Tensor, "batch src_len d_model"]
    mask: Bool[Tensor, "batch 1 #q_len src_len"]


@dataclass(frozen=True)
class BlockState:
    """The keys and values that one decoder block has of the target so far, and of the memory.

    The block computes the memory's keys and values once a sentence. The target's keys and values
    grow by one position a step. A step computes one row of the full pass, with equal numbers,
    because the causal mask hides later positions from earlier positions.
    """

    self_keys: Float[Tensor, "rows heads tgt_len d_head"]
    self_values: Float[Tensor, "rows heads tgt_len d_head"]
    memory_keys: Float[Tensor, "rows heads src_len d_head"]
    memory_values: Float[Tensor, "rows heads src_len d_head"]

    def grown(
        self,
        key: Float[Tensor, "rows heads 1 d_head"],
        value: Float[Tensor, "rows heads 1 d_head"],
    ) -> "BlockState":
        """The cache with the key and value of one more target position."""
        return BlockState(
            torch.cat((self.self_keys, key), dim=2),
            torch.cat((self.self_values, value), dim=2),
            self.memory_keys,
            self.memory_values,
        )

    def select(self, rows: Int[Tensor, " selected"]) -> "BlockState":
        return BlockState(
            self.self_keys.index_select(0, rows),
            self.self_values.index_select(0, rows),
            self.memory_keys.index_select(0, rows),
            self.memory_values.index_select(0, rows),
        )


@dataclass(frozen=True)
class DecoderState:
    """The caches of all blocks; a step changes no state and returns a new state."""

    blocks: tuple[BlockState, ...]
    memory_mask: Bool[Tensor, "rows 1 #q_len src_len"]

    @property
    def length(self) -> int:
        """The number of target tokens read so far."""
        return self.blocks[0].self_keys.size(2)

    @property
    def rows(self) -> int:
        return self.memory_mask.size(0)

    def select(self, rows: Int[Tensor, " selected"]) -> "DecoderState":
        """The state of the given rows, in the order of ``rows``, which may repeat a row.

        So a beam follows its surviving hypotheses, and finished sentences leave the batch.
        """
        return DecoderState(
            tuple(block.select(rows) for block in self.blocks),
            self.memory_mask.index_select(0, rows),
        )


def check_rows(tokens: int, rows: int) -> None:
    """Refuse a step that does not read one token for each row of the state."""
    if tokens != rows:
        raise ValueError(f"{tokens} tokens for a state of {rows} rows: give one for each row")
