"""Greedy search: at every step the most probable token.

Beam search with a beam of 1 finds the same; this is the plain form of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Int64
from torch import Tensor

from glassformer.decoding.constraints import Constraint, Rules
from glassformer.decoding.protocols import (
    DEFAULT_IDS,
    IMPOSSIBLE,
    Hypothesis,
    S,
    StepFunction,
    Vocabulary,
)

__all__ = ["follow", "greedy"]

Choose: TypeAlias = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Logits (rows, vocab), what the rows hold (rows, length), their sentences (rows,) -> the token of
each row (rows,), its log-probability (rows,)."""


@torch.no_grad()
def greedy(
    step: StepFunction[S],
    state: S,
    *,
    max_lengths: Int64[Tensor, " batch"],
    vocabulary: Vocabulary = DEFAULT_IDS,
    constraints: Sequence[Constraint] = (),
) -> list[list[Hypothesis]]:
    """The target that takes the most probable token at every step, one for each sentence.

    `state` has one row for each sentence. A sentence ends with the end symbol, or unfinished after
    `max_lengths` steps; it then leaves the batch. The score is the log-probability. As with the
    other searches, each sentence's hypotheses are a list: here of one.

    >>> class Nothing:
    ...     def select(self, rows):
    ...         return self
    >>> def step(tokens, state):  # 2 (start) -> 4 -> 5 -> 3 (end)
    ...     following = torch.tensor([0, 0, 4, 0, 5, 3])[tokens]
    ...     return 50.0 * torch.nn.functional.one_hot(following, 6), state
    >>> greedy(step, Nothing(), max_lengths=torch.tensor([9, 1]))[0][0].tokens
    (4, 5)
    >>> greedy(step, Nothing(), max_lengths=torch.tensor([9, 1]))[1][0].finished
    False
    """
    rules = Rules(max_lengths, vocabulary, constraints)

    def most_probable(logits: Tensor, tokens: Tensor, sentences: Tensor) -> tuple[Tensor, Tensor]:
        value, token = rules.best(logits, tokens, sentences, count=1)
        return token[:, 0], value[:, 0]

    found = follow(step, state, most_probable, rules=rules, sentences=rules.sentences())
    return [[hypothesis] for hypothesis in found]


def follow(
    step: StepFunction[S],
    state: S,
    choose: Choose,
    *,
    rules: Rules,
    sentences: Int64[Tensor, " rows"],
) -> list[Hypothesis]:
    """Walk on in every row with the token that `choose` picks, until the row ends.

    `sentences` says which sentence each row of `state` works on. The answer is in the order of the
    rows. A row that meets a dead end, where nothing may come next, gives `IMPOSSIBLE`.
    """
    found = [IMPOSSIBLE] * len(sentences)
    rows = torch.arange(len(sentences), device=sentences.device)  # those still in the batch
    tokens = rows.new_empty(len(rows), 0)
    total = torch.zeros(len(rows), device=rows.device)
    last = rules.start(len(rows))
    while len(rows):
        logits, state = step(last, state)
        last, log_probability = choose(logits, tokens, sentences)
        total = total + log_probability
        tokens = torch.cat([tokens, last.unsqueeze(1)], dim=1)  # (rows, length + 1)

        ended = last == rules.vocabulary.eos_id
        cut = rules.max_lengths[sentences] <= tokens.shape[1]
        leaves = ended | cut | total.isneginf()
        if not leaves.any():
            continue
        for i in leaves.nonzero().flatten().tolist():
            found[int(rows[i])] = _hypothesis(tokens[i], float(total[i]), bool(ended[i]))
        stays = (~leaves).nonzero().flatten()
        rows, sentences, tokens = rows[stays], sentences[stays], tokens[stays]
        total, last, state = total[stays], last[stays], state.select(stays)
    return found


def _hypothesis(
    tokens: Int64[Tensor, " length"], log_probability: float, ended: bool
) -> Hypothesis:
    if log_probability == -torch.inf:
        return IMPOSSIBLE
    ids = tuple(tokens.tolist())
    return Hypothesis(ids[:-1] if ended else ids, log_probability, log_probability, ended)
