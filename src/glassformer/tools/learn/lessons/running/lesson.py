# %% [markdown]
# # Running softmax
#
# Milakov and Gimelshein 2018, "Online normalizer calculation for softmax",
# algorithm 3; Dao et al. 2022, "FlashAttention", algorithm 1. A harder
# exercise, without hints.
#
# The paper's attention holds all q_len · k_len scores at once: the softmax
# wants their maximum and their sum first. For 50,000 keys that is too much
# memory. Yet one pass over blocks of keys suffices. It keeps the largest score
# m so far, the sum s of all exp(score - m), and the sum of all
# exp(score - m) · value. If a block brings a larger score m', the old sums
# were taken with the wrong m. One factor puts that right:
#
#     s = s · exp(m - m') + the sum of exp(score - m') in the block
#
# The result is exact: no approximation. The subtraction keeps exp from
# overflowing, as in every softmax. Each query has its own m and s.

# %%
import math
from collections.abc import Iterable

import torch
from torch import Tensor

Block = tuple[Tensor, Tensor, Tensor | None]
"""Keys (..., block, d_k), values (..., block, d_v), and a mask or None."""


def running_sum(scores: Iterable[float]) -> tuple[float, float]:
    """The largest score m, and the sum of exp(score - m), in one pass.

    The scores can be read only once. A hidden key has the score -∞, and adds
    nothing; there may be such scores before the first other one. At least one
    score is finite.

    Scores 1, 3, 2: m is 3, and the sum is exp(-2) + 1 + exp(-1) = 1.503.
    """
    raise NotImplementedError


def running_attention(query: Tensor, blocks: Iterable[Block]) -> Tensor:
    """The output of attention over keys that come block by block.

    query (..., q_len, d_k) -> output (..., q_len, d_v)

    The blocks can be read only once, and each may have another length. The
    mask of a block (..., q_len, block) is True where a query may attend. It
    may hide a whole block, the first one too. A query that may attend to
    nothing gets zeros. The memory that you need must not grow with the number
    of blocks.

    Query [[1]]; a block with key [[0]] and value [[10]]; one with key
    [[log 3]] and value [[20]]: the weights are 1/4 and 3/4, the output is
    [[17.5]].
    """
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Two machines have half of the keys each. What must they exchange?
# 2. How often does m change, if 1,000 scores come in random order?
