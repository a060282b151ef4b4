"""The decoder (section 3.1, figure 1 right): a stack of blocks that reads target and memory."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config import Norm, check_arguments
from glassformer.model.cache import BlockState
from glassformer.model.forms import PAPER, ModelParts, joined

__all__ = ["Decoder", "DecoderBlock"]


class DecoderBlock(nn.Module):
    """Three residual blocks: masked self-attention, attention over the memory, feed-forward.

    :meth:`step` is :meth:`forward` for one position; the cache holds the keys and values of
    earlier positions.

    >>> import torch
    >>> x, memory = torch.zeros(3, 5, 8), torch.zeros(3, 7, 8)
    >>> DecoderBlock(8, 2, 32)(x, memory).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm: Norm = "post",
        parts: ModelParts = PAPER,
    ) -> None:
        super().__init__()
        make = joined(parts, dropout=dropout, norm=norm)
        self.self_attention = make.residual(make.self_attention(d_model, num_heads), d_model)
        self.cross_attention = make.residual(make.cross_attention(d_model, num_heads), d_model)
        self.feed_forward = make.residual(make.feed_forward(d_model, d_ff), d_model)

    def forward(
        self,
        x: Float[Tensor, "batch tgt_len d_model"],
        memory: Float[Tensor, "batch src_len d_model"],
        self_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Float[Tensor, "batch tgt_len d_model"]:
        x = self.self_attention(x, mask=self_mask)
        x = self.cross_attention(x, memory, mask=memory_mask)
        return self.feed_forward(x)

    def start(self, memory: Float[Tensor, "batch src_len d_model"]) -> BlockState:
        """The state before the first token: keys and values of the memory, none of the target."""
        cross_attention = self.cross_attention.sublayer
        keys, values = cross_attention.project_keys_and_values(memory, memory)
        empty = keys[:, :, :0]
        return BlockState(empty, empty, keys, values)

    def step(
        self,
        x: Float[Tensor, "rows 1 d_model"],
        state: BlockState,
        memory_mask: Tensor | None = None,
    ) -> tuple[Float[Tensor, "rows 1 d_model"], BlockState]:
        """Compute one position, which attends to every key in the cache and to its own key."""
        attention, cross_attention = self.self_attention.sublayer, self.cross_attention.sublayer
        y = self.self_attention.before(x)
        state = state.grown(*attention.project_keys_and_values(y, y))
        x = self.self_attention.add(x, attention.attend(y, state.self_keys, state.self_values))
        y = self.cross_attention.before(x)
        x = self.cross_attention.add(
            x, cross_attention.attend(y, state.memory_keys, state.memory_values, memory_mask)
        )
        return self.feed_forward(x), state


class Decoder(nn.Module):
    """The stack of blocks, with a last LayerNorm if the blocks are pre-norm.

    >>> import torch
    >>> x, memory = torch.zeros(3, 5, 8), torch.zeros(3, 7, 8)
    >>> Decoder([DecoderBlock(8, 2, 32) for _ in range(2)])(x, memory).shape
    torch.Size([3, 5, 8])
    """

    blocks: Any  # a ModuleList of DecoderBlock: ModuleList has no type parameter

    def __init__(self, blocks: list[DecoderBlock], *, final_norm: nn.Module | None = None) -> None:
        super().__init__()
        check_arguments("Decoder", blocks=blocks, final_norm=final_norm)
        self.blocks = nn.ModuleList(blocks)
        self.norm = final_norm or nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "batch tgt_len d_model"],
        memory: Float[Tensor, "batch src_len d_model"],
        self_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Float[Tensor, "batch tgt_len d_model"]:
        for block in self.blocks:
            x = block(x, memory, self_mask, memory_mask)
        return self.norm(x)

    def start(self, memory: Float[Tensor, "batch src_len d_model"]) -> tuple[BlockState, ...]:
        return tuple(block.start(memory) for block in self.blocks)

    def step(
        self,
        x: Float[Tensor, "rows 1 d_model"],
        states: tuple[BlockState, ...],
        memory_mask: Tensor | None = None,
    ) -> tuple[Float[Tensor, "rows 1 d_model"], tuple[BlockState, ...]]:
        following = []
        for block, state in zip(self.blocks, states, strict=True):
            x, state = block.step(x, state, memory_mask)
            following.append(state)
        return self.norm(x), tuple(following)
