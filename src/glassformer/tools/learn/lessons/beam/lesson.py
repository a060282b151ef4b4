# %% [markdown]
# # Beam search
#
# > "We used beam search with a beam size of 4 and length penalty α = 0.6."
# > (section 6.1)
#
# Greedy search never takes back a token. Beam search keeps several
# *hypotheses*: at each step it continues all of them, and keeps the best. A
# hypothesis that ends is set aside.
#
# A longer target has a lower probability, because each token multiplies it by
# a number below 1. Without a correction the search prefers short translations.
# So the log-probability of a finished target is divided by the length penalty
# of Wu et al. (2016), equation 14:
#
#     score(Y) = log P(Y | X) / lp(Y),    lp(Y) = ((5 + |Y|) / 6)^α
#
# An end is a continuation like any other. If ends took places among the
# hypotheses, the search would lose a hypothesis for each end. So a step takes
# the 2 · beam best continuations. At most one continuation of each hypothesis
# is an end, so at least `beam` go on.
#
# `decoding/fast/beam.py` is this search for a whole batch at once.

# %%
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.protocols import Candidate, Hypothesis


def penalty(length: int, alpha: float) -> float:
    """Equation 14 of Wu et al.: the divisor of a log-probability.

    Length 1: 1. Length 13, alpha 0.5: (18 / 6)^0.5 = 1.732.
    """
    # One line.
    raise NotImplementedError


def best_continuations(
    live: list[Candidate],
    log_probabilities: Tensor,
    ids: Tensor,
    *,
    count: int,
) -> list[Candidate]:
    """The count most probable continuations of all hypotheses, best first.

    live: the hypotheses, each a Candidate(tokens, log_probability, row)
    log_probabilities, ids (live, kept): the likeliest next tokens of each
    -> Candidates with one token more, with its log-probability added; row: the
       place of its hypothesis in live

    There are at most live · kept of them. live [Candidate((5,), -1.0, 0)],
    log-probabilities [[-0.5, -3.0]], ids [[8, 9]], count 1:
    [Candidate((5, 8), -1.5, 0)].
    """
    # Eight lines: the sums (live, kept); the best of all; their rows and ids.
    raise NotImplementedError


def divide(
    best: list[Candidate], eos: int, *, beam: int, length_penalty: float
) -> tuple[list[Hypothesis], list[Candidate]]:
    """The targets that end, and the first `beam` candidates that go on.

    best: the candidates of one step, best first; eos: the end symbol
    -> a Hypothesis(tokens, score, log_probability, finished) for each end
       among the first `beam` candidates: its target without eos, its score the
       log-probability over its penalty, whose length counts eos
    -> the first `beam` of all candidates that do not end

    eos 2, beam 1, alpha 0:
    [Candidate((8, 2), -1.0, 0), Candidate((8, 5), -2.0, 0)] gives
    [Hypothesis((8,), -1.0, -1.0, True)], and the second candidate.
    """
    # Six lines: a loop over the first candidates, and the others.
    raise NotImplementedError


def beam_search(
    step: Callable[[Tensor, Any], tuple[Tensor, Any]],
    state: Any,
    rules: OutputRules,
    *,
    beam: int,
    length_penalty: float,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """The n_best best targets of each sentence, best first.

    The state has one row for each sentence, and max_lengths one length.
    rules.best(logits, tokens, sentences, count=…) -> log-probabilities and ids
        (live, kept) of the most probable tokens that may follow tokens
        (live, length), which is (1, 0) at step 1; sentences (live,): the
        number of the sentence, for each row
    rules.start(1) (1,): bos, the start symbol
    rules.vocabulary.eos_id: eos, the end symbol
    -> the Hypothesis records of each sentence, one sentence after another

    A sentence begins with one hypothesis: no tokens, log-probability 0, its
    row of the state: state.select(torch.tensor([sentence])). Each step
    1. reads the newest token of each hypothesis (at first bos);
    2. takes the 2 · beam best continuations;
    3. divides them: sets the ends aside, and goes on with the others and with
       their rows: select(rows).

    The search ends after max_lengths[sentence] steps; or as soon as it has
    `beam` finished targets, if the best continuation of some step was an end.
    It may also end if no hypothesis can reach the score of the n_best-th
    finished target. The answer is the finished targets by their scores, and
    after them the hypotheses in their order, each log-probability over its
    penalty.

    bos 1, eos 2, beam 2: after 1 come 4 (0.6) and 5 (0.4); the end has 0.5
    after 4, and 1.0 after 5. Greedy search finds [4], with probability 0.3;
    beam search finds [5], with 0.4.
    """
    # Twenty lines.
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Search with alpha 0 and with alpha 2. Which targets are longer?
# 2. With a beam of 1, which search is it?
