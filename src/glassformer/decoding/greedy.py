"""Greedy search, which takes the most probable token at every step.

Beam search with a beam of 1 finds an equal target. In the fast version, finished rows leave the
batch (`decoding/fast/greedy.py`).
"""

import math

import torch

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.protocols import IMPOSSIBLE, Hypothesis, S, StepFunction

__all__ = ["greedy"]


@torch.no_grad()
def greedy(step: StepFunction[S], state: S, rules: OutputRules) -> list[list[Hypothesis]]:
    """For each sentence the target with the most probable token at every step.

    `state` has one row for each sentence. A row ends with the end symbol, or unfinished after its
    maximum length. An ended row stays in the batch, but its further tokens do not count. The score
    is the log-probability. Each sentence has a list of one hypothesis, as other searches find more.

    >>> class NoState:
    ...     def select(self, rows):
    ...         return self
    >>> def step(tokens, state):  # 2 (start) -> 4 -> 5 -> 3 (end)
    ...     following = torch.tensor([0, 0, 4, 0, 5, 3])[tokens]
    ...     return 50.0 * torch.nn.functional.one_hot(following, 6), state
    >>> [[long], [short]] = greedy(step, NoState(), OutputRules(torch.tensor([9, 1])))
    >>> long.tokens, long.finished, short.tokens, short.finished
    ((4, 5), True, (4,), False)
    """
    sentences = rules.sentences()  # (rows,)
    targets: list[list[int]] = [[] for _ in sentences]
    scores, ended = [0.0] * len(targets), [False] * len(targets)
    unfinished = set(range(len(targets)))
    tokens, last = sentences.new_empty(len(targets), 0), rules.start(len(targets))
    total = torch.zeros(len(targets), device=sentences.device)
    while unfinished:
        logits, state = step(last, state)
        log_probability, best = rules.best(logits, tokens, sentences, count=1)  # (rows, 1)
        tokens, last = torch.cat([tokens, best], dim=1), best[:, 0]
        total = total + log_probability[:, 0]
        for row in sorted(unfinished):
            scores[row], ended[row] = float(total[row]), int(last[row]) == rules.vocabulary.eos_id
            if not ended[row]:
                targets[row].append(int(last[row]))
            impossible = scores[row] == -math.inf
            if ended[row] or impossible or len(targets[row]) == rules.max_lengths[row]:
                unfinished.remove(row)
    return [
        [Hypothesis(tuple(target), score, score, end) if score > -math.inf else IMPOSSIBLE]
        for target, score, end in zip(targets, scores, ended, strict=True)
    ]
