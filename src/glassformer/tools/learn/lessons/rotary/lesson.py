# %% [markdown]
# # Rotary positions
#
# Su et al. 2021, "RoFormer", section 3.2. A harder exercise, without hints.
#
# The paper adds the vector of a position to the embedding. The sum then goes
# through all layers, and each attention has to find the distance of two words
# in it. Rotary positions add nothing. Each self-attention turns its queries
# and keys by angles that grow with their positions. A dot product of two
# turned vectors depends on the difference of their angles. So a score knows
# how far apart two words are, and nothing else about their places. The values
# are not turned.
#
# The features 2i and 2i + 1 of a head are pair i. Position p turns it by one
# angle (equation 15):
#
#     angle(p, i) = p / 10000^(2i / d_head),     i = 0, 1, …, d_head/2 - 1
#     (a, b) becomes (a cos - b sin, a sin + b cos)
#
# These are the rates of the paper's sinusoids. Many programs, such as Hugging
# Face's LLaMA, pair feature i with i + d_head/2 instead: their weights fit
# only their own layout.

# %%
import math

import torch
from torch import Tensor

from glassformer import masked_softmax, scaled_dot_product_attention


def rotary_angles(positions: Tensor, d_head: int) -> Tensor:
    """The angle of each pair at each position.

    positions (len): integers, d_head: even
    -> angles (len, d_head / 2), in float64

    Positions 0 and 3 with d_head 4: [[0, 0], [3, 0.03]].

    A float32 angle of position 1,000,000 is wrong in the second decimal.
    """
    raise NotImplementedError


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """Each pair of features, turned by its angle; float32 stays float32.

    x (..., len, d_head), angles (len, d_head / 2) in float64
    -> (..., len, d_head)

    x [[1, 2, 3, 4]] with angles [[0, π/2]]: [[1, 2, -4, 3]].
    """
    raise NotImplementedError


def rotary_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Attention with turned queries and keys: the output alone.

    query (batch, heads, q_len, d_head), key (batch, heads, k_len, d_head),
    value (batch, heads, k_len, d_v) -> output (batch, heads, q_len, d_v)

    Key j is at position j. The queries are the last q_len positions of the
    keys: a decoder with a KV cache asks with the newest token alone.

    One query [1, 0], keys [1, 0] and [1, 0], values [10] and [20]: the query
    is at position 1, so the scores are cos(1)/√2 = 0.38 and 1/√2 = 0.71, and
    the output is [15.8].
    """
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Add 1,000 to the positions of all queries and keys. What do the scores
#    become?
# 2. Why are the values not turned?
