# %% [markdown]
# # Masks: no look ahead, and the shift
#
# > "We need to prevent leftward information flow in the decoder to preserve
# > the auto-regressive property." (section 3.2.3)
#
# A translator writes word after word. To train it, the decoder reads the whole
# target sentence at once, and predicts every word of it at once. Nothing may
# tell it the word that it has to predict:
#
# - The *shift* hides the word of the same step. The decoder's input begins
#   with the start symbol bos and lacks the last label: at step t it reads
#   label t - 1, and predicts label t.
# - The *mask* hides the words of later steps: position i attends to itself and
#   earlier positions.
#
#     labels            Hund    rennt   eos      what the decoder predicts
#     decoder's input   bos     Hund    rennt    what it reads
#
# Without either of them the decoder copies the answer. The loss falls to
# nearly zero. A translator has no answer to copy: it writes nonsense.
#
# A mask is boolean, True = may attend, with axes (batch, heads, q_len, k_len).

# %%
import torch
from torch import Tensor

# The last lesson's: (batch, 1, 1, len), True = a real token.
from glassformer import padding_mask


def subsequent_mask(length: int) -> Tensor:
    """True if position i, the row, may attend to column j: j <= i.

    -> mask (length, length), boolean

    length 3 -> [[True, False, False],
                 [True, True,  False],
                 [True, True,  True]]
    """
    # One line. torch.ones makes a square, Tensor.tril keeps a triangle of it.
    raise NotImplementedError


def target_mask(tokens: Tensor, pad: int) -> Tensor:
    """The decoder's self-attention mask: no later position, no padding.

    tokens (batch, len) -> mask (batch, 1, len, len), boolean, on their device

    tokens [[2, 7, 0]] with pad 0 -> [[[[True, False, False],
                                        [True, True,  False],
                                        [True, True,  False]]]]
    """
    # One line, of padding_mask and your subsequent_mask, .to(tokens.device).
    raise NotImplementedError


def shift(labels: Tensor, bos: int) -> Tensor:
    """The decoder's input: bos, then all labels but the last.

    labels (batch, len), which stay as they are
    -> input (batch, len), of their type and on their device

    labels [[7, 8, 3], [9, 3, 0]] with bos 2 -> [[2, 7, 8], [2, 9, 3]]
    (3 is the end symbol, 0 the padding. A label that is padding counts in no
    loss, so it does not matter that the decoder reads the 3 there.)
    """
    # One or two lines. torch.full_like(labels[:, :1], bos) is a column of bos.
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Padding stands after the words. Which rows of target_mask does the padding
#    change at all?
# 2. Train with the shift but without the mask, or with the mask but without
#    the shift. Where does the decoder find its answer?
#    `glassformer learn train FOLDER` trains without the mistake, and with
#    `--mistake causal-missing` with it;
#    `glassformer learn compare FOLDER/translator causal-missing` draws both
#    losses. Which one is lower? Which translator is right?
