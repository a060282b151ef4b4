# %% [markdown]
# # The decoder: masked self-attention, then attention over the memory
#
# > "In addition to the two sub-layers in each encoder layer, the decoder
# > inserts a third sub-layer, which performs multi-head attention over the
# > output of the encoder stack." (section 3.1)
#
# The encoder's output is the *memory*. The third sublayer stands between the
# other two. It is called cross-attention: its queries come from the target,
# its keys and values from the memory. It is the only way from the source to
# the translation. Without it a decoder is a language model: it writes fluent
# sentences that have nothing to do with the source.
#
# The two attentions have different masks:
#
# - self-attention: no later target word, no padding of the target
#   (batch, 1, tgt_len, tgt_len)
# - cross-attention: no padding of the source (batch, 1, 1, src_len)
#
# In training all target words go in at once. If self-attention sees a later
# word, the model learns to copy that word. In translation there is no later
# word to copy.
#
# Each sublayer is in a residual block, as in the encoder. The block hands the
# tensors after x on to its sublayer. So a memory after x is the attention's
# key, and its value too, if no other is given. With pre-norm only x is normed
# there: the encoder has normed the memory.

# %%
from typing import Any, Literal

import torch
from torch import Tensor, nn

from glassformer import FeedForward, MultiHeadAttention, ResidualBlock


class DecoderBlock(nn.Module):
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
        self.cross_attention = ResidualBlock(
            MultiHeadAttention(d_model, num_heads), d_model, **settings
        )
        network = FeedForward(d_model, d_ff)
        self.feed_forward = ResidualBlock(network, d_model, **settings)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        self_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Self-attention, attention over the memory, feed-forward network.

        x (batch, tgt_len, d_model), memory (batch, src_len, d_model),
        self_mask (batch, 1, tgt_len, tgt_len),
        memory_mask (batch, 1, 1, src_len)
        -> (batch, tgt_len, d_model)

        If self-attention and the feed-forward network give zeros, and
        cross-attention gives [0, 2], then with pre-norm one word [3, 1]
        becomes [3, 3].
        """
        # Three lines, one for each residual block.
        raise NotImplementedError


class Decoder(nn.Module):
    def __init__(
        self,
        blocks: list[DecoderBlock],
        *,
        final_norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        # Pre-norm blocks need a LayerNorm at the end.
        self.norm = final_norm or nn.Identity()

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        self_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """The stack: one block after another, then the final norm.

        All blocks read one memory. The shapes are those of the block.

        If the first block doubles its input, the second adds the memory, and
        the memory is [3, 4], then [1, 2] becomes [5, 8].
        """
        # Three lines.
        raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Change the last target word. Which outputs of the decoder change, with and
#    without self_mask?
# 2. Exchange two words of the memory. What changes in the output?
