# %% [markdown]
# # The encoder: one block, and the stack of blocks
#
# > "The encoder is composed of a stack of N = 6 identical layers. Each layer has two sub-layers.
# > The first is a multi-head self-attention mechanism, and the second is a simple, position-wise
# > fully connected feed-forward network." (section 3.1)
#
# Self-attention lets each word read the others. The feed-forward network then works on each word
# alone. Without the first, no word knows its neighbours. Without the second, a block only mixes
# what it reads. Here a layer is called a *block*.
#
# "Identical" means the same form: each block has its own weights. Block 2 reads the output of
# block 1. All blocks get the same mask: no query may read padding, in any of them.
#
# A residual connection and a LayerNorm stand around each sublayer (section 3.1). `ResidualBlock`
# has all three, and `norm="post"` (the paper's) or `norm="pre"` places its LayerNorm:
#
#                             post-norm                         pre-norm
#     block.before(x)         x                                 LayerNorm(x)
#     block.sublayer(…)       the attention, or the feed-forward network
#     block.add(x, output)    LayerNorm(x + Dropout(output))    x + Dropout(output)
#     block(x)                all three steps, for a sublayer of one argument
#
# With pre-norm the last block ends without a LayerNorm. So the stack has one more, at its end.

# %%
from typing import Literal

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
        self.self_attention = ResidualBlock(
            MultiHeadAttention(d_model, num_heads), d_model, dropout=dropout, norm=norm
        )
        self.feed_forward = ResidualBlock(
            FeedForward(d_model, d_ff), d_model, dropout=dropout, norm=norm
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Self-attention, then the feed-forward network, each in its residual block.

        x (batch, src_len, d_model), mask broadcasts to (batch, heads, src_len, src_len)
        -> (batch, src_len, d_model)

        MultiHeadAttention takes (query, key, value, mask). In self-attention the first three are
        the same tensor.

        If both sublayers give zeros, one word [3, 1] becomes [1, -1] with post-norm: LayerNorm
        brings it to mean 0 and variance 1, twice. With pre-norm it stays [3, 1].
        """
        # Three lines: the attention's input, its output added to x, the feed-forward network.
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
        self.norm = final_norm or nn.Identity()  # pre-norm blocks need a LayerNorm at the end

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The stack: one block after another, then the final norm.

        x (batch, src_len, d_model), mask as above -> (batch, src_len, d_model)

        If the first block doubles its input and the second adds 3, then [1, 2] becomes [5, 7].
        """
        # Three lines.
        raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Make the blocks of a stack as `[EncoderBlock(64, 4, 256)] * 6`, and count its parameters.
# 2. Exchange two words of x. What changes in the encoder's output, and what follows for order?
