# %% [markdown]
# # Masks: no padding
#
# > "We implement this inside of scaled dot-product attention by masking out
# > (setting to −∞) all values in the input of the softmax which correspond to
# > illegal connections." (section 3.2.3)
#
# Sentences of a batch have different lengths; the shorter ones are filled up
# with a padding id. No query may read that padding: a sentence would mean
# something else in other company.
#
# A mask here is boolean: True = may attend. It broadcasts to the scores
# (batch, heads, q_len, k_len). Its softmax gives weights of zero to hidden
# keys. Where a query may attend to nothing at all, all its weights are zero; a
# plain −∞ would make them NaN there, and NaN spreads to every weight.

# %%
import torch
from torch import Tensor


def padding_mask(tokens: Tensor, pad: int) -> Tensor:
    """True for each token but padding, for all heads and queries.

    tokens (batch, len) -> mask (batch, 1, 1, len), boolean

    tokens [[5, 6, 0]] with pad 0 -> [[[[True, True, False]]]]
    """
    # One line.
    raise NotImplementedError


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights of each query: a softmax over the keys that the mask shows.

    scores and weights (..., q_len, k_len); the mask broadcasts to them

    scores [[0, 0, 0]] with mask [[True, True, False]] -> [[0.5, 0.5, 0]]
    scores [[0, 0, 0]] with mask [[False, False, False]] -> [[0, 0, 0]]
    """
    # Four lines: no mask; hide scores; the softmax; rows that see nothing.
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Add −10 to the hidden scores in place of hiding them. How much weight does
#    the padding get?
# 2. Which keys does a padding query attend to with this mask, and why does
#    that not matter?
