"""The encoder (section 3.1, figure 1 left): a stack of blocks that reads the source."""

from typing import Unpack

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.model.blocks import BlockSettings, attention_block, feed_forward_block

__all__ = ["Encoder", "EncoderBlock"]


class EncoderBlock(nn.Module):
    """Self-attention, then the feed-forward network, each in its residual block.

    >>> import torch
    >>> EncoderBlock(8, 2, 32)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, **settings: Unpack[BlockSettings]
    ) -> None:
        super().__init__()
        self.self_attention = attention_block(d_model, num_heads, settings)
        self.feed_forward = feed_forward_block(d_model, d_ff, settings)

    def forward(
        self, x: Float[Tensor, "batch src_len d_model"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch src_len d_model"]:
        x = self.self_attention(x, mask=mask)
        return self.feed_forward(x)


class Encoder(nn.Module):
    """The stack: one block after another. Pre-norm blocks need one more LayerNorm at the end.

    >>> import torch
    >>> Encoder([EncoderBlock(8, 2, 32) for _ in range(2)])(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, blocks: list[EncoderBlock], *, final_norm: nn.Module | None = None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.norm = final_norm or nn.Identity()

    def forward(
        self, x: Float[Tensor, "batch src_len d_model"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch src_len d_model"]:
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)
