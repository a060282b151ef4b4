"""Beam search, with the paper's length penalty (section 6.1), after Wu et al. (2016).

At every step the search continues the `beam` most probable unfinished targets. At last it ranks the
finished targets by their log-probability over a length penalty:

    score(Y) = log P(Y | X) / lp(Y),   lp(Y) = ((5 + |Y|) / 6) ** alpha      (Wu et al., eq. 14)

`|Y|` counts the end symbol of a finished target, as its log-probability does. The paper uses a beam
of 4 and alpha 0.6. A target has at most 50 tokens more than its source, and the search ends "early
when possible". The search of a sentence ends

- if no unfinished target can overtake the `n_best`-th finished target, or
- if `beam` targets are finished, and a finished target was the most probable candidate of its step,
- or after the maximum length. The search returns unfinished targets if it finishes too few.

A number of finished targets alone ends no search: all of these targets may be improbable while the
best is unfinished. The fast version searches a whole batch at once (`decoding/fast/beam.py`).
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.config import BEAM, LENGTH_PENALTY, MOST_LENGTH_PENALTY
from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.protocols import IMPOSSIBLE, Candidate, Hypothesis, S, StepFunction

__all__ = ["Observe", "beam_search", "best_continuations", "check_search", "divide", "penalty"]

Number = TypeVar("Number", float, Tensor)
Observe: TypeAlias = Callable[[int, list[Candidate], Tensor], None]
"""`observe(sentence, candidates, log_probabilities)` sees a step: its candidates, best first, and
the log-probabilities (rows, vocab) of each token after each unfinished target."""


@torch.no_grad()
def beam_search(
    step: StepFunction[S],
    state: S,
    rules: OutputRules,
    *,
    beam: int = BEAM,
    length_penalty: float = LENGTH_PENALTY,
    n_best: int = 1,
    observe: Observe | None = None,
) -> list[list[Hypothesis]]:
    """At most `n_best` targets of each sentence, best first; one sentence after another.

    `state` has one row for each sentence. A beam of 1 is greedy search. No target is empty. A
    parameter out of its range raises `ValueError`.

    >>> class NoState:
    ...     def select(self, rows):
    ...         return self
    >>> table = torch.zeros(6, 6)  # after 2, 4 is more probable, but only 5 ends for certain
    >>> table[[2, 2, 4, 4, 4, 5], [4, 5, 3, 4, 5, 3]] = torch.tensor([0.6, 0.4, 0.5, 0.3, 0.2, 1])
    >>> def step(tokens, state):
    ...     return table[tokens].log(), state
    >>> rules = OutputRules(torch.tensor([9]))
    >>> [beam_search(step, NoState(), rules, beam=beam)[0][0].tokens for beam in (1, 2)]
    [(4,), (5,)]
    """
    check_search(beam, n_best, length_penalty)
    eos, alpha, results = rules.vocabulary.eos_id, length_penalty, []
    for sentence, longest in enumerate(rules.max_lengths.tolist()):
        live, cache = [Candidate((), 0.0, row=sentence)], state
        finished, led = list[Hypothesis](), False
        for length in range(1, longest + 1):
            cache = cache.select(rules.ids([target.row for target in live]))
            tokens = rules.ids([target.tokens for target in live])  # (live, length - 1)
            last = tokens[:, -1] if length > 1 else rules.start(1)
            owners = torch.full_like(last, sentence)  # rules may differ from sentence to sentence
            logits, cache = step(last, cache)
            likely = rules.best(logits, tokens, owners, count=2 * beam)
            best = best_continuations(live, *likely, count=2 * beam)
            if observe is not None:
                observe(sentence, best, rules.log_probabilities(logits, tokens, owners))
            ended, live = divide(best, eos, beam=beam, length_penalty=alpha)
            finished = sorted([*finished, *ended], key=lambda target: -target.score)
            led = led or best[:1] != live[:1]  # the most probable candidate is finished
            if not live or (led and len(finished) >= beam):
                break
            # A log-probability never rises, and the longest target has the greatest divisor.
            reachable = live[0].log_probability / penalty(longest, alpha)
            if len(finished) >= n_best and reachable <= finished[n_best - 1].score:
                break
        divisor = penalty(length, alpha)
        cut = [Hypothesis(target, total / divisor, total, False) for target, total, _ in live]
        results.append([*finished, *cut][:n_best] or [IMPOSSIBLE])
    return results


def best_continuations(
    live: Sequence[Candidate],
    log_probabilities: Float[Tensor, "live kept"],
    ids: Int64[Tensor, "live kept"],
    *,
    count: int,
) -> list[Candidate]:
    """At most `count` most probable targets that are one token longer, best first.

    Row i of `log_probabilities` and `ids` has the most probable next tokens of `live[i]`. No other
    token can make one of the best targets. The result leaves out an impossible target.

    >>> live = [Candidate((5,), -1.0, row=0), Candidate((7,), -2.0, row=1)]
    >>> log_probabilities, ids = torch.tensor([[-0.5, -3.0]] * 2), torch.tensor([[8, 9]] * 2)
    >>> best = best_continuations(live, log_probabilities, ids, count=2)
    >>> [target.tokens for target in best], [target.row for target in best]
    ([(5, 8), (7, 8)], [0, 1])
    """
    totals = log_probabilities.new_tensor([target.log_probability for target in live])
    sums = totals[:, None] + log_probabilities
    best, places = sums.flatten().topk(min(count, sums.numel()))
    rows, following = places // sums.size(1), ids.flatten()[places]
    return [
        Candidate((*live[row].tokens, token), total, row)
        for total, row, token in zip(best.tolist(), rows.tolist(), following.tolist(), strict=True)
        if total > -math.inf
    ]


def divide(
    best: Sequence[Candidate], eos: int, *, beam: int, length_penalty: float
) -> tuple[list[Hypothesis], list[Candidate]]:
    """The finished targets among a step's candidates, and the `beam` best that go on.

    An end counts only among the first `beam` candidates, like any other continuation. Each target
    has only one continuation that ends, so at least `beam` of 2 · `beam` candidates go on.

    >>> best = [Candidate((8, 2), -1.0, row=0), Candidate((8, 5), -2.0, row=0)]
    >>> finished, live = divide(best, 2, beam=1, length_penalty=0.0)
    >>> finished
    [Hypothesis(tokens=(8,), score=-1.0, log_probability=-1.0, finished=True)]
    >>> [target.tokens for target in live]
    [(8, 5)]
    """
    finished = []
    for tokens, total, _ in best[:beam]:
        if tokens[-1] == eos:
            score = total / penalty(len(tokens), length_penalty)  # the end symbol is part of |Y|
            finished.append(Hypothesis(tokens[:-1], score, total, finished=True))
    return finished, [target for target in best if target.tokens[-1] != eos][:beam]


def check_search(beam: int, n_best: int, length_penalty: float) -> None:
    """Raise `ValueError` for a number out of its range."""
    if beam < 1:
        raise ValueError(f"beam must be at least 1, not {beam}")
    if not 1 <= n_best <= beam:
        raise ValueError(f"n_best must be from 1 to the beam of {beam}, not {n_best}")
    if not 0 <= length_penalty <= MOST_LENGTH_PENALTY:
        raise ValueError(
            f"length_penalty must be from 0 to {MOST_LENGTH_PENALTY:g}, not {length_penalty}"
        )


def penalty(length: Number, alpha: float) -> Number:
    """The length penalty of Wu et al. (2016), equation 14; 1 for every length if alpha is 0.

    >>> penalty(1, 0.6), round(penalty(13, 0.5), 3)
    (1.0, 1.732)
    """
    return ((5 + length) / 6) ** alpha
