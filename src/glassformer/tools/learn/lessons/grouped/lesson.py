# %% [markdown]
# # Grouped queries
#
# Ainslie et al. 2023, "GQA", section 2. A harder exercise, without hints.
#
# A step of decoding reads the whole KV cache to write one token: the time goes
# into memory, not into sums. The paper keeps a key and a value for each head.
# Shazeer (2019) keeps one of each for all heads, "multi-query": the cache is
# small, and the model loses some quality. Grouped queries lie between. The
# heads stand in groups, and each group shares its keys and values.
#
#     head h reads group ⌊h / (heads / groups)⌋
#
# Groups = heads is the paper's attention, one group is multi-query. The
# paper's base model keeps 8 heads · 64 features · 2 = 1,024 numbers a position
# in each block; with 2 groups it keeps 256.
#
# A trained model need not begin anew. Section 2.1 takes the mean of the key
# projections of each group's heads, the same for the values, and trains a
# little longer.

# %%
import torch
from torch import Tensor

from glassformer import masked_softmax, scaled_dot_product_attention


def grouped_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Attention whose heads share keys and values by groups: the output alone.

    query (batch, heads, q_len, d_head), key (batch, groups, k_len, d_head),
    value (batch, groups, k_len, d_v) -> output (batch, heads, q_len, d_v)

    heads is a multiple of groups. With 6 heads and 2 groups, heads 0, 1, 2
    read group 0, and heads 3, 4, 5 read group 1. The mask has any shape that
    broadcasts to (batch, heads, q_len, k_len).

    Two heads, one group with one key and the value [7]: the output of both
    heads is [7].
    """
    raise NotImplementedError


def pooled(weight: Tensor, heads: int, groups: int) -> Tensor:
    """The groups' projection of keys or values: the means of their heads.

    weight (heads · d_head, d_model) -> (groups · d_head, d_model)
    bias (heads · d_head) -> (groups · d_head)

    Head h has the rows from h · d_head to (h + 1) · d_head - 1.

    4 heads of width 1, 2 groups: [[1], [3], [10], [20]] becomes [[2], [15]].
    """
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. With one group, what can still differ from head to head?
# 2. What do 32 sentences of 1,000 tokens keep in 6 blocks of the base model?
#    And with 2 groups?
