"""Sampling: targets drawn at random, with the model's probabilities.

Temperature sharpens or flattens the distribution. Top-k and top-p cut off its tail, because the
many improbable tokens together are drawn too often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.decoding.constraints import Constraint, OutputRules
from glassformer.decoding.greedy import follow
from glassformer.decoding.logits_processors import LogitsProcessor
from glassformer.decoding.protocols import DEFAULT_IDS, Hypothesis, S, StepFunction, Vocabulary

__all__ = ["sample", "shape_distribution"]

_COLDEST = torch.finfo(torch.float32).tiny  # the lowest temperature that float32 can divide by


@torch.no_grad()
def sample(
    step: StepFunction[S],
    state: S,
    *,
    max_lengths: Int64[Tensor, " batch"],
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    n_best: int = 1,
    generator: torch.Generator | None = None,
    vocabulary: Vocabulary = DEFAULT_IDS,
    constraints: Sequence[Constraint] = (),
    processors: Sequence[LogitsProcessor] = (),
) -> list[list[Hypothesis]]:
    """`n_best` independent targets for each sentence, the most probable first; some may be equal.

    `state` has one row for each sentence. Each token is drawn from `shape_distribution`; score and
    log-probability are the model's, before shaping. The same `generator` seed gives the same
    targets for the same batch; another device or another batch gives others. Raises `ValueError`
    for a parameter out of its range.

    >>> class NoState:
    ...     def select(self, rows):
    ...         return self
    >>> def step(tokens, state):  # 4 or 5, and after them the end
    ...     probability = torch.zeros(6, 6)
    ...     probability[2] = torch.tensor([0, 0, 0, 0, 0.75, 0.25])
    ...     probability[[4, 5], 3] = 1.0
    ...     return probability[tokens].log(), state
    >>> seeded, length = torch.Generator().manual_seed(1), torch.tensor([9])
    >>> [targets] = sample(step, NoState(), max_lengths=length, n_best=1000, generator=seeded)
    >>> 0.7 < sum(target.tokens == (4,) for target in targets) / 1000 < 0.8
    True
    """
    if n_best < 1:
        raise ValueError(f"n_best must be at least 1, not {n_best}")
    _check(temperature, top_k, top_p)
    rules = OutputRules(max_lengths, vocabulary, constraints, processors)

    def draw(logits: Tensor, tokens: Tensor, sentences: Tensor) -> tuple[Tensor, Tensor]:
        log_probabilities = rules.log_probabilities(logits, tokens, sentences)
        # If no token may follow, the draw is from all tokens; its probability stays zero.
        dead = log_probabilities.isneginf().all(dim=1, keepdim=True)
        shaped = shape_distribution(
            log_probabilities.masked_fill(dead, 0.0),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
        )
        token = torch.multinomial(shaped, 1, generator=generator)
        return token[:, 0], log_probabilities.gather(1, token)[:, 0]

    sentences = rules.sentences().repeat_interleave(n_best)
    targets = follow(step, state, draw, rules=rules, sentences=sentences)
    groups = [targets[i : i + n_best] for i in range(0, len(targets), n_best)]
    return [sorted(group, key=lambda target: target.score, reverse=True) for group in groups]


def shape_distribution(
    log_probabilities: Float[Tensor, "rows vocab"],
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
) -> Float[Tensor, "rows vocab"]:
    """The probabilities to draw from, shaped in this order:

    1. `softmax(log p / temperature)`: below 1 probable tokens gain, above 1 they lose.
    2. The `top_k` most probable tokens, renormalised (Fan et al. 2018); 0 means all.
    3. The fewest tokens whose probabilities sum to at least `top_p`, the most probable first,
       renormalised (Holtzman et al. 2020); 1 means all.

    >>> shape_distribution(torch.tensor([[0.5, 0.3, 0.2]]).log(), top_k=2)
    tensor([[0.6250, 0.3750, 0.0000]])
    >>> shape_distribution(torch.tensor([[0.5, 0.3, 0.2]]).log(), top_p=0.5)
    tensor([[1., 0., 0.]])
    """
    _check(temperature, top_k, top_p)
    # Subtract the greatest: softmax ignores it, and no low temperature makes all of them -inf.
    distances = log_probabilities - log_probabilities.amax(dim=-1, keepdim=True)
    probabilities = (distances / max(temperature, _COLDEST)).softmax(dim=-1)
    if top_k == 0 and top_p == 1:
        return probabilities
    kept, ids = probabilities.sort(dim=-1, descending=True, stable=True)
    if top_k:
        kept[:, top_k:] = 0.0
        kept = kept / kept.sum(dim=-1, keepdim=True)
    if top_p < 1:
        before = kept.cumsum(dim=-1) - kept  # the sum of the more probable tokens
        kept = kept.masked_fill(before >= top_p, 0.0)
        kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(1, ids, kept)


def _check(temperature: float, top_k: int, top_p: float) -> None:
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be a finite number above 0, not {temperature}")
    if top_k < 0:
        raise ValueError(f"top_k must be at least 0 (0: all tokens), not {top_k}")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, not {top_p}")
