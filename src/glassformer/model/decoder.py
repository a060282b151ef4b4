"""The decoder (section 3.1, figure 1 right): a stack that reads the target and the memory."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.model.attention import MultiHeadAttention
from glassformer.model.blocks import Activation, FeedForward, Norm, ResidualBlock
from glassformer.model.cache import BlockState

__all__ = ["Decoder", "DecoderBlock"]


class DecoderBlock(nn.Module):
    """Masked self-attention, attention over the memory, feed-forward: three residual blocks.

    Self- and cross-attention have weights of their own. :meth:`step` is :meth:`forward` for one
    position, with the keys and values of earlier ones taken from a state.

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
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: Activation = "relu",
        norm: Norm = "post",
        norm_epsilon: float = 1e-5,
    ) -> None:
        super().__init__()

        def residual(sublayer: nn.Module) -> ResidualBlock:
            return ResidualBlock(
                sublayer, d_model, dropout=dropout, norm=norm, norm_epsilon=norm_epsilon
            )

        self.self_attention = residual(
            MultiHeadAttention(d_model, num_heads, dropout=attention_dropout)
        )
        self.cross_attention = residual(
            MultiHeadAttention(d_model, num_heads, dropout=attention_dropout)
        )
        self.feed_forward = residual(
            FeedForward(d_model, d_ff, dropout=activation_dropout, activation=activation)
        )

    def forward(
        self,
        x: Float[Tensor, "batch tgt_len d_model"],
        memory: Float[Tensor, "batch src_len d_model"],
        self_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Float[Tensor, "batch tgt_len d_model"]:
        x = self.self_attention(x, lambda attention, x: attention(x, x, x, self_mask))
        x = self.cross_attention(x, lambda attention, x: attention(x, memory, memory, memory_mask))
        return self.feed_forward(x)

    def start(self, memory: Float[Tensor, "batch src_len d_model"]) -> BlockState:
        """The state before the first token: the memory's keys and values, none of the target."""
        keys, values = self.cross_attention.sublayer.project_memory(memory, memory)
        none = keys[:, :, :0]
        return BlockState(none, none, keys, values)

    def step(
        self,
        x: Float[Tensor, "rows 1 d_model"],
        state: BlockState,
        memory_mask: Tensor | None = None,
    ) -> tuple[Float[Tensor, "rows 1 d_model"], BlockState]:
        """One position: it sees every key that the state holds, and its own."""
        grown = state

        def read_self(attention: MultiHeadAttention, x: Tensor) -> Tensor:
            nonlocal grown
            key, value = attention.project_memory(x, x)
            grown = BlockState(
                torch.cat((state.self_keys, key), dim=2),
                torch.cat((state.self_values, value), dim=2),
                state.memory_keys,
                state.memory_values,
            )
            return attention.attend(x, grown.self_keys, grown.self_values)

        x = self.self_attention(x, read_self)
        x = self.cross_attention(
            x,
            lambda attention, x: attention.attend(
                x, state.memory_keys, state.memory_values, memory_mask
            ),
        )
        return self.feed_forward(x), grown


class Decoder(nn.Module):
    """The blocks in turn, with a last norm where they are pre-norm (see :class:`Encoder`).

    >>> x, memory = torch.zeros(3, 5, 8), torch.zeros(3, 7, 8)
    >>> Decoder([DecoderBlock(8, 2, 32) for _ in range(2)])(x, memory).shape
    torch.Size([3, 5, 8])
    """

    blocks: Any  # a ModuleList, which does not tell what it holds

    def __init__(self, blocks: list[DecoderBlock], *, final_norm: nn.Module | None = None) -> None:
        super().__init__()
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
        grown = []
        for block, state in zip(self.blocks, states, strict=True):
            x, new = block.step(x, state, memory_mask)
            grown.append(new)
        return self.norm(x), tuple(grown)
