"""Greedy search: at every step the most probable token.

Beam search with a beam of 1 finds the same target; this is its plain form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, Unpack

import torch
from jaxtyping import Int64
from torch import Tensor

from glassformer.decoding.constraints import OutputRules, RuleOptions
from glassformer.decoding.protocols import IMPOSSIBLE, Hypothesis, S, StepFunction

__all__ = ["follow", "greedy"]

Choose: TypeAlias = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""`choose(logits (rows, vocab), tokens (rows, length), sentences (rows,))` returns the next token
of each row (rows,) and its log-probability (rows,)."""


@torch.no_grad()
def greedy(
    step: StepFunction[S],
    state: S,
    **rules: Unpack[RuleOptions],
) -> list[list[Hypothesis]]:
    """For each sentence the target that takes the most probable token at every step.

    `state` has one row for each sentence; `rules`: see `OutputRules`. A sentence ends with the end
    symbol, or unfinished after `max_lengths` steps; it then leaves the batch. The score is the
    log-probability. Each sentence has a list of hypotheses, as in the other searches; here it holds
    one.

    >>> class NoState:
    ...     def select(self, rows):
    ...         return self
    >>> def step(tokens, state):  # 2 (start) -> 4 -> 5 -> 3 (end)
    ...     following = torch.tensor([0, 0, 4, 0, 5, 3])[tokens]
    ...     return 50.0 * torch.nn.functional.one_hot(following, 6), state
    >>> greedy(step, NoState(), max_lengths=torch.tensor([9, 1]))[0][0].tokens
    (4, 5)
    >>> greedy(step, NoState(), max_lengths=torch.tensor([9, 1]))[1][0].finished
    False
    """
    output = OutputRules(**rules)

    def most_probable(logits: Tensor, tokens: Tensor, sentences: Tensor) -> tuple[Tensor, Tensor]:
        log_probability, token = output.best(logits, tokens, sentences, count=1)
        return token[:, 0], log_probability[:, 0]

    hypotheses = follow(step, state, most_probable, rules=output, sentences=output.sentences())
    return [[hypothesis] for hypothesis in hypotheses]


def follow(
    step: StepFunction[S],
    state: S,
    choose: Choose,
    *,
    rules: OutputRules,
    sentences: Int64[Tensor, " rows"],
) -> list[Hypothesis]:
    """One hypothesis for each item of `sentences`: a step appends the token that `choose` returns.

    `state` has one row for each sentence; `sentences` may name a sentence several times. A row in
    which no token may follow gives `IMPOSSIBLE`.
    """
    hypotheses = [IMPOSSIBLE] * len(sentences)
    rows = torch.arange(len(sentences), device=sentences.device)  # the rows still in the batch
    tokens = rows.new_empty(len(rows), 0)
    total = torch.zeros(len(rows), device=rows.device)
    last = rules.start(len(rules.max_lengths))
    while len(rows):
        logits, state = step(last, state)
        if len(last) < len(rows):  # the first step serves all rows of a sentence
            rules.check_logits(logits, len(last))
            logits, state = logits[sentences], state.select(sentences)
        last, log_probability = choose(logits, tokens, sentences)
        total = total + log_probability
        tokens = torch.cat([tokens, last.unsqueeze(1)], dim=1)  # (rows, length + 1)

        ended = last == rules.vocabulary.eos_id
        cut = rules.max_lengths[sentences] <= tokens.shape[1]
        leaves = ended | cut | total.isneginf()
        if not leaves.any():
            continue
        for i in leaves.nonzero().flatten().tolist():
            if (log_p := float(total[i])) > -torch.inf:
                ids, ends = tuple(tokens[i].tolist()), bool(ended[i])
                hypotheses[int(rows[i])] = Hypothesis(ids[:-1] if ends else ids, log_p, log_p, ends)
        stays = (~leaves).nonzero().flatten()
        rows, sentences, tokens = rows[stays], sentences[stays], tokens[stays]
        total, last, state = total[stays], last[stays], state.select(stays)
    return hypotheses
