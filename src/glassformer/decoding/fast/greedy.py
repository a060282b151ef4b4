"""Greedy search whose finished sentences leave the batch.

The readable version is `greedy` in `decoding/greedy.py`. A test checks that both give equal results
(tests/decoding/fast/test_searches.py).
"""

import torch
from torch import Tensor

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.fast.top_k import without_check
from glassformer.decoding.protocols import Hypothesis, S, StepFunction
from glassformer.decoding.sampling import follow

__all__ = ["greedy"]


@torch.no_grad()
def greedy(step: StepFunction[S], state: S, rules: OutputRules) -> list[list[Hypothesis]]:
    """For each sentence the target that takes the most probable token at every step.

    `state` has one row for each sentence.

    >>> class NoState:
    ...     def select(self, rows):
    ...         return self
    >>> def step(tokens, state):  # 2 (start) -> 4 -> 5 -> 3 (end)
    ...     following = torch.tensor([0, 0, 4, 0, 5, 3])[tokens]
    ...     return 50.0 * torch.nn.functional.one_hot(following, 6), state
    >>> greedy(step, NoState(), OutputRules(torch.tensor([9])))[0][0].tokens
    (4, 5)
    """

    undefined = rules.sentences().new_zeros(())
    quick = without_check(rules)

    def most_probable(logits: Tensor, tokens: Tensor, sentences: Tensor) -> tuple[Tensor, Tensor]:
        log_probability, token = quick.best(logits, tokens, sentences, count=1)
        undefined.add_(log_probability.isnan().sum())
        return token[:, 0], log_probability[:, 0]

    hypotheses = follow(step, state, most_probable, rules=rules, sentences=rules.sentences())
    if undefined.item() and quick is not rules:  # rarely: a row without a distribution, or an error
        quick = rules
        hypotheses = follow(step, state, most_probable, rules=rules, sentences=rules.sentences())
    return [[hypothesis] for hypothesis in hypotheses]
