# %% [markdown]
# # The loss: labels with a little doubt
#
# > "During training, we employed label smoothing of value ε_ls = 0.1. This
# > hurts perplexity, as the model learns to be more unsure, but improves
# > accuracy and BLEU score." (section 5.4)
#
# At each target position the model gives one logit per symbol of the
# vocabulary; a softmax makes probabilities p of them. Cross-entropy is the
# surprise at the right symbol: −log p_label. It is zero only at p_label = 1,
# and no logits reach that: the model would push them apart for ever.
#
# Label smoothing asks for less. It takes ε of the label's share, and spreads
# it evenly over the whole vocabulary of V symbols, the label included. The
# label's share is 1 − ε + ε/V, every other symbol's is ε/V:
#
#     loss of one label = (1 − ε) (−log p_label)
#                         + ε · mean over the vocabulary of (−log p_v)
#
# A batch is filled up with padding. Padding is no label: it adds nothing to
# the sum, and it does not count in the mean. The mean runs over all real
# labels of the batch, whatever the sentence: so every token weighs the same.

# %%
import torch
from torch import Tensor


def label_smoothed_cross_entropy(
    logits: Tensor, labels: Tensor, *, smoothing: float = 0.1, pad_id: int = 0
) -> Tensor:
    """The mean loss, in nats, of the labels that are not padding.

    Zero if all are padding.

    logits (batch, tgt_len, vocab), labels (batch, tgt_len) -> loss, one number

    One label 1, and logits with the probabilities 1/4, 1/2, 1/4. −log p is
    1.386, 0.693, 1.386: 0.693 at the label, 1.155 in the mean. The loss is
    0.9 · 0.693 + 0.1 · 1.155 = 0.739.
    """
    # Five lines: which labels are real; the log-probabilities; the surprise at
    # the labels; its mean over the vocabulary; both together, as a mean over
    # the real labels.
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. A model is as unsure as the labels ask: it gives each symbol its share.
#    What is its loss with ε = 0.1 and 37000 symbols?
# 2. One sentence has 10 labels with a loss of 1 each, another has 2 labels
#    with a loss of 4 each. What is the mean over the labels, and what is the
#    mean of the two sentences' means?
