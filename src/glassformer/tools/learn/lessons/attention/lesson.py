# %% [markdown]
# # Scaled dot-product attention
#
# > "We compute the dot products of the query with all keys, divide each by
# > √d_k, and apply a softmax function to obtain the weights on the values."
# > (section 3.2.1)
#
# A *query* asks, *keys* answer how well they match, and *values* are what is
# read. The softmax turns the matches of a query into weights that sum to 1.
# The output is the weighted mean of the values:
#
#     Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V          (equation 1)
#
# Why divide? A score is a sum of d_k products. If their factors have variance
# 1, the score has variance d_k: with d_k = 64, scores of ±16 are common, one
# weight is nearly 1, all others are nearly 0, and so are their gradients.
#
# The last two axes are positions and features. All axes before them
# (batch, heads) stay as they are.

# %%
import math

import torch
from torch import Tensor

# A softmax over the last axis; the next lesson builds it.
from glassformer import masked_softmax


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Equation 1: the output, and the weights.

    query (..., q_len, d_k), key (..., k_len, d_k), value (..., k_len, d_v)
    -> output (..., q_len, d_v), weights (..., q_len, k_len)

    One query [1, 0], keys [1, 0] and [0, 1], values [10] and [20]: the scores
    are 1/√2 and 0, the weights 0.67 and 0.33, the output [13.3].
    """
    # Three lines: scores, weights by masked_softmax(scores, mask), output.
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Multiply all queries by 100. What do the weights become?
# 2. Exchange two keys, and their values too. What changes in the output?
