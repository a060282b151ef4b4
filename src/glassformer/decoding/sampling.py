"""Sampling, which draws targets at random with the model's probabilities.

Temperature sharpens or flattens the distribution. Top-k and top-p cut off its tail, because draws
would take one of the many improbable tokens too often.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.protocols import IMPOSSIBLE, Hypothesis, S, StepFunction
from glassformer.support.errors import check_kind

__all__ = ["Sampling", "follow", "sample", "shape_distribution"]

Choose: TypeAlias = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""`choose(logits (rows, vocab), tokens (rows, length), sentences (rows,))` returns the next token
of each row (rows,) and its log-probability (rows,)."""

_COLDEST = torch.finfo(torch.float32).tiny  # the lowest temperature that float32 can divide by


@dataclass(frozen=True)
class Sampling:
    """The settings of draws; a seed repeats draws. A number out of its range is a `ValueError`."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_kind(value, Real, wants=f"Sampling takes a number as {name}")
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"temperature must be a finite number above 0, not {self.temperature}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be at least 0 (0: all tokens), not {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")


_AS_IT_IS = Sampling()  # the model's own probabilities


@torch.no_grad()
def sample(
    step: StepFunction[S],
    state: S,
    rules: OutputRules,
    *,
    sampling: Sampling = _AS_IT_IS,
    n_best: int = 1,
    generator: torch.Generator | None = None,
) -> list[list[Hypothesis]]:
    """`n_best` independent targets for each sentence, the most probable first, some perhaps equal.

    `state` has one row for each sentence. The search draws each token from `shape_distribution`;
    score and log-probability come from the model's distribution before shaping. Equal seeds give
    equal targets for equal batches; another device or another batch gives other targets. A
    `generator` continues its draws from batch to batch. None means a new generator with the seed of
    `sampling`.

    >>> class NoState:
    ...     def select(self, rows):
    ...         return self
    >>> def step(tokens, state):  # 4 or 5, and after them the end
    ...     probability = torch.zeros(6, 6)
    ...     probability[2] = torch.tensor([0, 0, 0, 0, 0.75, 0.25])
    ...     probability[[4, 5], 3] = 1.0
    ...     return probability[tokens].log(), state
    >>> [targets] = sample(step, NoState(), OutputRules(torch.tensor([9])), n_best=1000)
    >>> 0.7 < sum(target.tokens == (4,) for target in targets) / 1000 < 0.8
    True
    """
    if n_best < 1:
        raise ValueError(f"n_best must be at least 1, not {n_best}")
    device = rules.max_lengths.device
    generator = generator or torch.Generator(device).manual_seed(sampling.seed % 2**64)

    def draw(logits: Tensor, tokens: Tensor, sentences: Tensor) -> tuple[Tensor, Tensor]:
        log_probabilities = rules.log_probabilities(logits, tokens, sentences)
        # If no token may follow, the draw is from all tokens; its probability stays zero.
        dead = log_probabilities.isneginf().all(dim=1, keepdim=True)
        shaped = shape_distribution(log_probabilities.masked_fill(dead, 0.0), sampling)
        token = torch.multinomial(shaped, 1, generator=generator)
        return token[:, 0], log_probabilities.gather(1, token)[:, 0]

    sentences = rules.sentences().repeat_interleave(n_best)
    targets = follow(step, state, draw, rules=rules, sentences=sentences)
    groups = [targets[i : i + n_best] for i in range(0, len(targets), n_best)]
    return [sorted(group, key=lambda target: target.score, reverse=True) for group in groups]


def follow(
    step: StepFunction[S],
    state: S,
    choose: Choose,
    *,
    rules: OutputRules,
    sentences: Int64[Tensor, " rows"],
) -> list[Hypothesis]:
    """One hypothesis for each item of `sentences`; each step appends a token from `choose`.

    `state` has one row for each sentence; `sentences` may name a sentence several times. A row in
    which no token may follow gives `IMPOSSIBLE`.
    """
    rows = list(range(len(sentences)))  # the rows still in the batch
    tokens = sentences.new_empty(len(rows), 0)
    total = torch.zeros(len(rows), device=sentences.device)
    last = rules.start(len(rules.max_lengths))
    left: list[tuple[list[int], Tensor, Tensor]] = []  # rows, tokens and totals, read at the end
    while rows:
        logits, state = step(last, state)
        if len(last) < len(rows):  # the first step serves all rows of a sentence
            rules.check_logits(logits, len(last))
            logits, state = logits[sentences], state.select(sentences)
        last, log_probability = choose(logits, tokens, sentences)
        total = total + log_probability
        tokens = torch.cat([tokens, last.unsqueeze(1)], dim=1)  # (rows, length + 1)

        cut = rules.max_lengths[sentences] <= tokens.shape[1]
        possible = total > -torch.inf
        ended = last == rules.vocabulary.eos_id
        leaves = (ended | cut | ~possible).tolist()  # the only wait of a step for the device
        if not any(leaves):
            continue
        gone = [place for place, leaving in enumerate(leaves) if leaving]
        places = rules.ids(gone)
        left.append(([rows[place] for place in gone], tokens[places], total[places]))
        kept = [place for place, leaving in enumerate(leaves) if not leaving]
        rows, stays = [rows[place] for place in kept], rules.ids(kept)
        sentences, tokens, total = sentences[stays], tokens[stays], total[stays]
        last, state = last[stays], state.select(stays)

    hypotheses = [IMPOSSIBLE] * sum(len(numbers) for numbers, _, _ in left)
    for numbers, targets, totals in left:
        for row, ids, log_p in zip(numbers, targets.tolist(), totals.tolist(), strict=True):
            if log_p > -math.inf:
                ends = ids[-1] == rules.vocabulary.eos_id
                target = tuple(ids[:-1] if ends else ids)
                hypotheses[row] = Hypothesis(target, log_p, log_p, ends)
    return hypotheses


def shape_distribution(
    log_probabilities: Float[Tensor, "rows vocab"], sampling: Sampling
) -> Float[Tensor, "rows vocab"]:
    """The probabilities to draw from, which three steps compute:

    1. `softmax(log p / temperature)` favours probable tokens if the temperature is below 1.
    2. Top-k renormalises the `top_k` most probable tokens (Fan et al. 2018); 0 keeps all tokens.
    3. Top-p renormalises the fewest most probable tokens whose probabilities sum to at least
       `top_p` (Holtzman et al. 2020); 1 keeps all tokens.

    >>> shape_distribution(torch.tensor([[0.5, 0.3, 0.2]]).log(), Sampling(top_k=2))
    tensor([[0.6250, 0.3750, 0.0000]])
    >>> shape_distribution(torch.tensor([[0.5, 0.3, 0.2]]).log(), Sampling(top_p=0.5))
    tensor([[1., 0., 0.]])
    """
    top_k, top_p = sampling.top_k, sampling.top_p
    # Softmax ignores the shift. Without it, a low temperature would make all numbers -inf.
    distances = log_probabilities - log_probabilities.amax(dim=-1, keepdim=True)
    probabilities = (distances / max(sampling.temperature, _COLDEST)).softmax(dim=-1)
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
