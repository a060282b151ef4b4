# %% [markdown]
# # Minimum-risk decoding
#
# Kumar and Byrne 2004, "Minimum Bayes-Risk Decoding for Statistical Machine
# Translation"; Eikema and Aziz 2020, "Is MAP Decoding All You Need?". A harder
# exercise, without hints.
#
# Beam search, the paper's decoding, looks for the most probable target. But a
# sentence has many good translations, and each has a small probability. The
# most probable one may be an odd one, such as an empty target, while most of
# the probability lies on targets that resemble each other. Minimum-risk
# decoding draws some targets at random, with the model's probabilities. It
# answers with the one that is most similar to the others:
#
#     answer = the sample h with the greatest mean of similarity(h, r)
#              over all other samples r
#
# If r is the right translation, similarity(h, r) is the gain from h; a lack of
# it is the risk. The other samples stand for what may be right. The search
# needs no beam and no length penalty: a target that is too short resembles few
# others. With your own translator, `translate([text], sampling=Sampling(),
# n_best=20)` draws 20: the text and its alternatives.

# %%
from collections import Counter
from collections.abc import Callable

import torch


def overlap(hypothesis: str, reference: str) -> float:
    """F1: 2 · (words in common) / (words of one + words of the other).

    Words stand between spaces. A word that stands twice on both sides is two
    words in common; one that stands twice on one side and once on the other is
    one. Two texts without words have 1.

    "the cat sat" and "the cat ran": 2 · 2 / (3 + 3) = 0.667.
    """
    raise NotImplementedError


def minimum_risk(
    samples: list[str], similarity: Callable[[str, str], float]
) -> tuple[str, list[float]]:
    """The answer, and the mean similarity of each sample to the others.

    similarity(hypothesis, reference): the sample that is judged comes first.

    A sample is not compared with itself. But a text may be drawn twice, and is
    then a reference for its twin. Of several best samples, the first is the
    answer. The mean of a single sample is 0.

    Samples "a b", "a b", "c" with overlap: the means are 0.5, 0.5, 0, and the
    answer is "a b".
    """
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. What is the answer if the similarity is 1 for equal texts and 0 for all
#    others?
# 2. How many similarities do 100 samples cost?
