# %% [markdown]
# # Relative positions
#
# Shaw et al. 2018, "Self-Attention with Relative Position Representations",
# section 3. A harder exercise, without hints.
#
# The paper's positions are absolute: the same two words get other vectors at
# the end of a sentence than at its beginning. Shaw et al. give each *distance*
# a vector instead, which is learned. It is added to the key that a query looks
# at (equation 4):
#
#     score(i, j) = q_i · (k_j + a(j - i)) / √d_head
#
# Far distances share a vector: a(d) is row clip(d, -most, most) of a table
# with 2 · most + 1 rows. So a model can read sentences that are longer than
# all of its training. The paper of 2018 adds such vectors to the values too,
# and finds that those of the keys alone do as well (section 4.3).
#
# Written as above, the keys of all pairs take q_len · k_len · d_head numbers.
# The product comes apart: q_i · k_j + q_i · a(j - i). Section 3.3 makes use of
# that.

# %%
import math

import torch
from torch import Tensor

from glassformer import masked_softmax


def clipped_distances(q_len: int, k_len: int, most: int) -> Tensor:
    """The row of each query i and key j: clip(j - i, -most, most) + most.

    -> (q_len, k_len): integers from 0 to 2 · most

    Key j is at position j. The queries are the last q_len positions of the
    keys: a decoder with a KV cache asks with the newest token alone.

    q_len 2, k_len 3, most 1: the queries are at positions 1 and 2.
    [[0, 1, 2], [0, 0, 1]].
    """
    raise NotImplementedError


def relative_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    table: Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    """The output of attention with a distance's vector added to each key.

    query (batch, heads, q_len, d_head), key (batch, heads, k_len, d_head),
    value (batch, heads, k_len, d_v),
    table (2 · most + 1, d_head), which all heads share
    -> output (batch, heads, q_len, d_v)

    Query [1] at position 1, keys [0] and [0], values [10] and [20], table
    [[0], [log 3], [5]]: the scores are 0 (distance -1) and log 3 (distance 0),
    the output is [17.5].
    """
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. With most = 16, how does it differ from rotary positions for two words
#    that are 100 apart?
# 2. With most = 0 there is one vector for all distances. What does it change?
