# %% [markdown]
# # The encoder: one block, and the stack of blocks
#
# > "The encoder is composed of a stack of N = 6 identical layers. Each layer
# > has two sub-layers. The first is a multi-head self-attention mechanism, and
# > the second is a simple, position-wise fully connected feed-forward
# > network." (section 3.1)
#
# Self-attention lets each word read the others. The feed-forward network then
# works on each word alone. Without attention, no word knows its neighbours.
# Without the network, a block only mixes the words. Here a layer is called a
# *block*.
#
# "Identical" means the same form: each block has its own weights. Block 2
# reads the output of block 1. All blocks get the same mask: no query may read
# padding, in any of them.
#
# `self.self_attention` and `self.feed_forward` are residual blocks:
# LayerNorm(x + Dropout(f(x))), with the attention or the network as f
# (section 3.1). Calling one with x and the mask does all of that. The mask
# needs its name, `mask=mask`: `self.self_attention(x, mask)` takes it for a
# key.
#
# With `norm="pre"` a residual block is x + Dropout(f(LayerNorm(x))). So the
# last block ends without a LayerNorm, and the stack has a LayerNorm more, at
# its end.

# %%
from typing import Any, Literal

import torch
from torch import Tensor, nn

from glassformer import FeedForward, MultiHeadAttention, ResidualBlock


class EncoderBlock(nn.Module):
    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm: Literal["post", "pre"] = "post",
    ) -> None:
        super().__init__()
        settings: Any = {"dropout": dropout, "norm": norm}
        self.self_attention = ResidualBlock(
            MultiHeadAttention(d_model, num_heads), d_model, **settings
        )
        network = FeedForward(d_model, d_ff)
        self.feed_forward = ResidualBlock(network, d_model, **settings)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Self-attention, then the feed-forward network.

        x (batch, src_len, d_model),
        mask broadcasts to (batch, heads, src_len, src_len)
        -> (batch, src_len, d_model)

        If both sublayers give zeros, one word [3, 1] becomes [1, -1] with
        post-norm: LayerNorm brings it to mean 0 and variance 1, twice. With
        pre-norm it stays [3, 1].
        """
        # Two lines, one for each residual block.
        raise NotImplementedError


class Encoder(nn.Module):
    def __init__(
        self,
        blocks: list[EncoderBlock],
        *,
        final_norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        # Pre-norm blocks need a LayerNorm at the end.
        self.norm = final_norm or nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The stack: one block after another, then the final norm.

        x (batch, src_len, d_model), mask as above -> (batch, src_len, d_model)

        If the first block doubles its input and the second adds 3, then [1, 2]
        becomes [5, 7].
        """
        # Three lines.
        raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Make the blocks of a stack as `[EncoderBlock(64, 4, 256)] * 6`, and count
#    its parameters.
# 2. Exchange two words of x. What changes in the encoder's output, and what
#    follows for order?
