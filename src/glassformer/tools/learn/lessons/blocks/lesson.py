# %% [markdown]
# # Feed-forward, residual, norm
#
# > "That is, the output of each sub-layer is LayerNorm(x + Sublayer(x)), where
# > Sublayer(x) is the function implemented by the sub-layer itself."
# > (section 3.1)
#
# A stream of vectors, one for each position, runs through all blocks. Each
# sublayer reads it and adds something to it: that is the residual connection.
# The sum lets the gradient pass each sublayer unchanged. The LayerNorm keeps
# each vector's numbers at mean 0 and variance 1, so the stream does not grow
# from block to block:
#
#     LayerNorm(x) = (x - mean) / √(variance + ε) · weight + bias
#         over the features of x
#
# The norm comes after the sum in the paper: "post". Later models put it before
# the sublayer, "pre": x + Sublayer(LayerNorm(x)). Nothing stands in the
# stream's way then, and deep models train without warm-up.
#
# One sublayer is attention, the other this network, the same at each position:
#
#     FFN(x) = max(0, x W₁ + b₁) W₂ + b₂          (equation 2)
#
# Without the ReLU between them, two matrices would be no more than one.

# %%
from typing import Any

import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Section 3.3: wider, ReLU, narrow again."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Equation 2.

        x (batch, len, d_model) -> (batch, len, d_ff) -> (batch, len, d_model)

        x [2], W₁ [1, -1], W₂ [[10], [100]], no biases:
        [2, -2] -> [2, 0] -> [20].
        """
        # One line.
        raise NotImplementedError


def layer_norm(
    x: Tensor, weight: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    """Mean 0 and variance 1 for each vector; then times weight, plus bias.

    x (batch, len, d_model), weight and bias (d_model) -> (batch, len, d_model)

    [1, 3] has mean 2 and variance 1, the mean of the squares (not divided by
    n - 1): with ε 0, weight 1 and bias 0 it becomes [-1, 1].
    """
    # Three lines.
    raise NotImplementedError


class LayerNorm(nn.Module):
    """Your layer_norm with its two vectors, which are trained."""

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.weight, self.bias, self.epsilon)


class ResidualBlock(nn.Module):
    """A sublayer with its residual connection, dropout and norm.

    The sublayer gets the context and the options: a mask, and the memory in
    the decoder.
    """

    def __init__(
        self,
        sublayer: nn.Module,
        d_model: int,
        *,
        dropout: float = 0.0,
        norm: str = "post",  # or "pre"
    ) -> None:
        super().__init__()
        self.sublayer = sublayer
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm == "pre"

    def forward(self, x: Tensor, *context: Tensor, **options: Any) -> Tensor:
        return self.add(x, self.sublayer(self.before(x), *context, **options))

    def before(self, x: Tensor) -> Tensor:
        """The sublayer's input: the stream x, after the norm if that is pre.

        x (batch, len, d_model) -> (batch, len, d_model)

        [1, 3] -> post [1, 3], pre [-1, 1].
        """
        # One line.
        raise NotImplementedError

    def add(self, x: Tensor, output: Tensor) -> Tensor:
        """x plus the dropout of the output; then the norm, if that is post.

        x and output (batch, len, d_model) -> (batch, len, d_model)

        x [1, 3] and output [4, 0] without dropout: pre [5, 3], post [1, -1].
        """
        # Two lines. (Section 5.4: dropout on the output, before the sum.)
        raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Multiply x by 10, and add 7. What does layer_norm give?
# 2. Send a stream through 6 untrained blocks, post and pre. How large is it at
#    the end?
