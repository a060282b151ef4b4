# %% [markdown]
# # Beam search
#
# > "We used beam search with a beam size of 4 and length penalty α = 0.6." (section 6.1)
#
# Greedy search never takes back a token. Beam search keeps several *hypotheses*: at each step it
# continues all of them, and keeps the best. What ends is set aside.
#
# A longer target has a lower probability, because each token multiplies it by a number below 1.
# Without a correction the search prefers short translations. So the log-probability of a
# finished target is divided by the length penalty of Wu et al. (2016), equation 14:
#
#     score(Y) = log P(Y | X) / lp(Y),    lp(Y) = ((5 + |Y|) / 6)^α
#
# An end is a continuation like any other. If it took a place among the hypotheses, the search
# would lose one for each end. So a step takes the 2 · beam best continuations: each hypothesis
# has only one that ends, and at least `beam` go on.
#
# `decoding/beam.py` is this search for batches, with n-best lists and constraints.

# %%
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.protocols import Vocabulary


def penalty(length: int, alpha: float) -> float:
    """Equation 14 of Wu et al.: what a log-probability is divided by.

    Length 1: 1. Length 13, alpha 0.5: (18 / 6)^0.5 = 1.732.
    """
    # One line.
    raise NotImplementedError


def best_continuations(totals: Tensor, logits: Tensor, count: int) -> list[tuple[float, int, int]]:
    """The count most probable continuations of all hypotheses together, best first.

    totals (live,): the log-probability of each hypothesis; logits (live, vocab): of its next token
    -> (log-probability of the continuation, row of the hypothesis, token), for each continuation

    There are at most live · vocab of them. totals [0], logits [[log 0.7, log 0.3]], count 2:
    [(-0.36, 0, 0), (-1.20, 0, 1)].
    """
    # Four lines: all sums (live, vocab); the best of them, flattened; row and token of each place.
    raise NotImplementedError


def beam_search(
    step: Callable[[Tensor, Any], tuple[Tensor, Any]],
    state: Any,
    *,
    max_length: int,
    beam: int,
    alpha: float,
    vocabulary: Vocabulary,
) -> tuple[list[int], float]:
    """The best target of one sentence, and its score. The target holds neither bos nor eos.

    bos is vocabulary.bos_id, the start symbol; eos is vocabulary.eos_id, the end symbol.

    It begins with one hypothesis: no tokens, log-probability 0, one row in the state. Each step
    1. reads the newest token of each hypothesis (at first bos);
    2. takes the 2 · beam best continuations;
    3. sets aside each end among the first `beam` of them, with its log-probability divided by
       penalty(length, alpha); the length counts eos;
    4. goes on with the first `beam` that do not end, and with their rows: state.select(rows).

    The search ends after max_length steps; or as soon as it has `beam` finished targets, if the
    best continuation of some step was an end. The answer is the finished target with the best
    score; if there is none, the best hypothesis, with its log-probability over its penalty.

    bos 1, eos 2, beam 2: after 1 come 4 (0.6) and 5 (0.4); after 4 the end has 0.5, after 5 it has
    1. Greedy search finds [4], with probability 0.3; beam search finds [5], with 0.4.
    """
    # Fifteen lines.
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Search with alpha 0 and with alpha 2. Which targets are longer?
# 2. With a beam of 1, which search is it?
