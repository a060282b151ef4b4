"""What the model carries: the encoder's output, and the decoder's place in a sentence."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["BlockState", "DecoderState", "Memory"]


@dataclass(frozen=True)
class Memory:
    """The encoder's output: its states, and which of them are no padding."""

    states: Float[Tensor, "batch src_len d_model"]
    mask: Bool[Tensor, "batch 1 #q_len src_len"]


@dataclass(frozen=True)
class BlockState:
    """One decoder block's keys and values: of the target so far, and of the memory.

    Those of the memory are computed once a sentence; those of the target grow by one each step.
    A step so costs one row of the full pass, and gives the same numbers: the causal mask kept
    earlier rows from seeing later ones anyway.
    """

    self_keys: Float[Tensor, "rows heads tgt_len d_head"]
    self_values: Float[Tensor, "rows heads tgt_len d_head"]
    memory_keys: Float[Tensor, "rows heads src_len d_head"]
    memory_values: Float[Tensor, "rows heads src_len d_head"]

    def select(self, rows: Int[Tensor, " selected"]) -> "BlockState":
        return BlockState(
            self.self_keys.index_select(0, rows),
            self.self_values.index_select(0, rows),
            self.memory_keys.index_select(0, rows),
            self.memory_values.index_select(0, rows),
        )


@dataclass(frozen=True)
class DecoderState:
    """All that a decoder needs for its next step, as a value: a step returns a new one."""

    blocks: tuple[BlockState, ...]
    memory_mask: Bool[Tensor, "rows 1 #q_len src_len"]

    @property
    def length(self) -> int:
        """The number of target tokens read so far."""
        return self.blocks[0].self_keys.size(2)

    def select(self, rows: Int[Tensor, " selected"]) -> "DecoderState":
        """The state of the given rows, in that order; a row may be named more than once.

        This is how a beam follows its survivors and how finished sentences leave.
        """
        return DecoderState(
            tuple(block.select(rows) for block in self.blocks),
            self.memory_mask.index_select(0, rows),
        )
