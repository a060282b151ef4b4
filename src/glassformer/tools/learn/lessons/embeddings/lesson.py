# %% [markdown]
# # Embeddings, and the way back
#
# > "In our model, we share the same weight matrix between the two embedding
# > layers and the pre-softmax linear transformation […]. In the embedding
# > layers, we multiply those weights by √d_model." (section 3.4)
#
# A table has one row of d_model numbers for each token. On the way in, each
# token becomes its row. On the way out, the decoder's state meets every row in
# a dot product: a score of each token, its logit. One table serves both ends,
# so a word has one meaning when it is read and when it is written.
#
# Why √d_model? A table that begins as N(0, 1/d_model) gives logits of a good
# size: with d_model 512 its numbers are about 0.04. The positions, which are
# added next, have the size 0.7. The factor 22.6 brings the words to 1.0;
# without it, a position is sixteen times louder than its word.

# %%
import math

import torch
from torch import Tensor, nn


class ScaledEmbedding(nn.Module):
    """A row of the table for each token, times √d_model."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        table = torch.randn(vocab_size, d_model) * d_model**-0.5
        self.weight = nn.Parameter(table)

    def forward(self, tokens: Tensor) -> Tensor:
        """The embeddings of the tokens.

        tokens (batch, len): integers, weight (vocab, d_model)
        -> (batch, len, d_model)

        tokens [[1]] with rows [0, 0], [3, 4] -> [[[4.24, 5.66]]]: √2 is 1.41.
        """
        # One line.
        raise NotImplementedError


class Transformer(nn.Module):
    """The two ends of a Transformer, without the stacks between them."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.target_embedding = ScaledEmbedding(vocab_size, d_model)

    def project(self, states: Tensor) -> Tensor:
        """Logits: the products of states and rows of the embedding's table.

        states (batch, len, d_model) -> logits (batch, len, vocab)

        A state [2, 3] with rows [1, 0], [0, 1], [1, 1] -> [2, 3, 5].
        """
        # One line. The table is the embedding's own, here without the factor.
        raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. How many numbers does tying save in the paper's base model, with 37,000
#    tokens for both sides?
# 2. Embed a token and project it at once. Which logit is the greatest, and
#    about how large?
