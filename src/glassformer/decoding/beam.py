"""Beam search, with the paper's length penalty (section 6.1), after Wu et al. (2016).

At every step each sentence keeps the `beam` most probable unfinished targets. Targets that end
are set aside, and ranked at last by their log-probability over a length penalty:

    score(Y) = log P(Y | X) / lp(Y),   lp(Y) = ((5 + |Y|) / 6) ** alpha      (Wu et al., eq. 14)

`|Y|` counts the end symbol of a finished target, as its log-probability does. The paper uses a beam
of 4, alpha 0.6 and a maximum length of the source's plus 50, "terminating early when possible".

Read `BeamState` first, then `beam_search`: four moves, `_propose`, `_set_aside`,
`_extend` and `_retire`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, overload

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from glassformer.config import BEAM, LENGTH_PENALTY, MOST_LENGTH_PENALTY
from glassformer.decoding.constraints import Constraint, Rules
from glassformer.decoding.glossary import Glossary
from glassformer.decoding.protocols import (
    DEFAULT_IDS,
    IMPOSSIBLE,
    Hypothesis,
    S,
    StepFunction,
    Vocabulary,
    select_beams,
)

__all__ = ["BeamState", "beam_search", "check_search", "penalty"]


@dataclass(frozen=True)
class BeamState(Generic[S]):
    """All that the search knows between two steps; each move gives a new one.

    `live` sentences are still in the batch, each with `width` unfinished targets of one length:
    1 before the first step, `beam` as soon as there are so many. A target that is impossible has
    log-probability -inf and only fills its place.
    """

    # Which sentence of the input each live one is.
    sentences: Int64[Tensor, " live"]
    # The unfinished targets, without the start symbol, and their log-probabilities.
    tokens: Int64[Tensor, "live width length"]
    log_probabilities: Float[Tensor, "live width"]
    # The decoder's state, and the row of it that each unfinished target continues from. Rows are
    # picked once a step, just before it: beams change places and sentences leave in one go.
    decoder: S
    rows: Int64[Tensor, "live width"]
    # What is set aside, for every sentence of the input; the lists grow in place.
    finished: list[list[Hypothesis]]
    # The score that an unfinished target must be able to exceed, or its sentence is done: -inf
    # while the sentence has fewer than `n_best` finished targets.
    bar: Float[Tensor, " live"]


@dataclass(frozen=True)
class _Candidates:
    """The most probable next targets, best first: those of `parents` with one token more."""

    log_probabilities: Float[Tensor, "live choices"]
    parents: Int64[Tensor, "live choices"]
    tokens: Int64[Tensor, "live choices"]
    ends: Bool[Tensor, "live choices"]
    width: int  # how many may go on


@dataclass(frozen=True)
class _Plan:
    """What the caller asked for."""

    beam: int
    alpha: float
    n_best: int
    rules: Rules

    @property
    def glossaries(self) -> list[Glossary]:
        """The constraints that have a say in who gets a place in the beam."""
        return [rule for rule in self.rules.constraints if isinstance(rule, Glossary)]

    def __post_init__(self) -> None:
        check_search(self.beam, self.n_best, self.alpha)


@torch.no_grad()
def beam_search(
    step: StepFunction[S],
    state: S,
    *,
    max_lengths: Int64[Tensor, " batch"],
    beam: int = BEAM,
    length_penalty: float = LENGTH_PENALTY,
    n_best: int = 1,
    vocabulary: Vocabulary = DEFAULT_IDS,
    constraints: Sequence[Constraint] = (),
) -> list[list[Hypothesis]]:
    """The best targets found for each sentence, best first, at most `n_best` of them.

    `state` has one row for each sentence; the search takes it several times. A sentence is done,
    and leaves the batch,

    - when no unfinished target can still overtake its `n_best`-th finished one, or
    - after `max_lengths` steps. Unfinished targets are then the answer only if there are fewer than
      `n_best` finished ones, and come after them.

    How many targets are finished does not end a sentence: among them may be `beam` improbable ones
    while the best is still unfinished. A beam of 1 is greedy search, and stops at its first end.
    No target is empty. Raises `ValueError` for a parameter out of its range.

    >>> class Nothing:
    ...     def select(self, rows):
    ...         return self
    >>> def step(tokens, state):  # 4 is likely, but then nothing is sure; 5 surely ends
    ...     probability = torch.zeros(6, 6)
    ...     probability[2] = torch.tensor([0, 0, 0, 0, 0.6, 0.4])
    ...     probability[4] = torch.tensor([0, 0, 0, 0.5, 0.3, 0.2])
    ...     probability[5] = torch.tensor([0, 0, 0, 1.0, 0, 0])
    ...     return probability[tokens].log(), state
    >>> length = torch.tensor([9])
    >>> beam_search(step, Nothing(), max_lengths=length, beam=1)[0][0].tokens
    (4,)
    >>> beam_search(step, Nothing(), max_lengths=length, beam=2)[0][0].tokens
    (5,)
    """
    plan = _Plan(beam, length_penalty, n_best, Rules(max_lengths, vocabulary, constraints))
    alive = _begin(state, plan)
    while len(alive.sentences):
        alive, candidates = _propose(step, alive, plan)
        alive = _set_aside(alive, candidates, plan)
        alive = _extend(alive, candidates)
        alive = _retire(alive, plan)
    return [_ranked(found)[:n_best] or [IMPOSSIBLE] for found in alive.finished]


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


@overload
def penalty(length: int, alpha: float) -> float: ...
@overload
def penalty(length: Tensor, alpha: float) -> Tensor: ...
def penalty(length: int | Tensor, alpha: float) -> float | Tensor:
    """Wu et al.'s length penalty, equation 14; 1 for every length where alpha is 0.

    >>> penalty(1, 0.6), round(penalty(13, 0.5), 3)
    (1.0, 1.732)
    """
    ratio: float | Tensor = (5 + length) / 6
    return ratio**alpha


def _begin(state: S, plan: _Plan) -> BeamState[S]:
    sentences = plan.rules.sentences()
    batch, device = len(sentences), sentences.device
    return BeamState(
        sentences,
        tokens=sentences.new_empty(batch, 1, 0),
        log_probabilities=torch.zeros(batch, 1, device=device),
        decoder=state,
        rows=sentences.unsqueeze(1),
        finished=[[] for _ in range(batch)],
        bar=torch.full((batch,), -torch.inf, device=device),
    )


def _propose(
    step: StepFunction[S], alive: BeamState[S], plan: _Plan
) -> tuple[BeamState[S], _Candidates]:
    """One step of the decoder, and the best continuations of each sentence.

    There are 2 * beam of them: at most one in each beam is the end symbol, so that at least `beam`
    can go on, however many end.
    """
    live, width, length = alive.tokens.shape
    tokens = alive.tokens.flatten(0, 1)  # (live * width, length)
    last = tokens[:, -1] if length else plan.rules.start(len(tokens))
    logits, decoder = step(last, select_beams(alive.decoder, alive.rows))
    owners = alive.sentences.repeat_interleave(width)
    # The best of a sentence are among the best of its rows: no sum over the vocabulary is needed.
    likeliest, tokens_of_row = plan.rules.best(logits, tokens, owners, count=2 * plan.beam)
    kept = likeliest.shape[1]
    sums = alive.log_probabilities.unsqueeze(2) + likeliest.view(live, width, kept)
    best, places = sums.flatten(1).topk(min(2 * plan.beam, width * kept), dim=1)
    parents = places // kept  # (live, choices)
    chosen = tokens_of_row.view(live, -1).gather(1, places)
    for glossary in plan.glossaries:
        following = plan.rules.log_probabilities(logits, tokens, owners)
        every = alive.log_probabilities.unsqueeze(2) + following.view(live, width, -1)
        vocab = every.shape[2]
        places = glossary.share(alive.sentences, alive.tokens, every, parents * vocab + chosen)
        best, parents, chosen = every.flatten(1).gather(1, places), places // vocab, places % vocab
    ends = chosen == plan.rules.vocabulary.eos_id
    candidates = _Candidates(best, parents, chosen, ends, plan.beam)
    rows = torch.arange(live * width, device=tokens.device).view(live, width)
    return replace(alive, decoder=decoder, rows=rows), candidates


def _set_aside(alive: BeamState[S], candidates: _Candidates, plan: _Plan) -> BeamState[S]:
    """Move the targets that end here to the finished ones, and set the bar anew.

    An end counts only among the first `beam` candidates, as for every other target.
    """
    ends = candidates.ends & candidates.log_probabilities.isfinite()
    where = ends[:, : plan.beam].nonzero(as_tuple=True)
    if not len(where[0]):
        return alive
    owners = alive.sentences[where[0]].tolist()
    targets = alive.tokens[where[0], candidates.parents[where]].tolist()
    sums = candidates.log_probabilities[where].tolist()
    for sentence, target, log_probability in zip(owners, targets, sums, strict=True):
        # The end symbol is part of |Y|.
        score = log_probability / penalty(len(target) + 1, plan.alpha)
        alive.finished[sentence].append(Hypothesis(tuple(target), score, log_probability, True))

    bars = [_bar(alive.finished[sentence], plan) for sentence in alive.sentences.tolist()]
    return replace(alive, bar=candidates.log_probabilities.new_tensor(bars))


def _bar(finished: list[Hypothesis], plan: _Plan) -> float:
    if len(finished) < plan.n_best:
        return -math.inf
    if plan.beam == 1:
        return math.inf  # greedy search has no second target to compare with
    return _ranked(finished)[plan.n_best - 1].score


def _extend(alive: BeamState[S], candidates: _Candidates) -> BeamState[S]:
    """Go on with the best candidates that do not end."""
    # A stable sort puts those that end last and leaves the others in their order.
    order = candidates.ends.int().argsort(dim=1, stable=True)[:, : candidates.width]
    parents = candidates.parents.gather(1, order)  # (live, width)
    # A small vocabulary may have too few that go on: an ended one only fills its place.
    sums = candidates.log_probabilities.masked_fill(candidates.ends, -torch.inf).gather(1, order)
    before = alive.tokens.gather(1, parents.unsqueeze(2).expand(-1, -1, alive.tokens.shape[2]))
    newest = candidates.tokens.gather(1, order).unsqueeze(2)
    return replace(
        alive,
        tokens=torch.cat([before, newest], dim=2),
        log_probabilities=sums,
        rows=alive.rows.gather(1, parents),
    )


def _retire(alive: BeamState[S], plan: _Plan) -> BeamState[S]:
    """Let the sentences leave that are at their maximum length or cannot get better.

    No log-probability rises, and it is divided by no more than the penalty of the maximum length:
    so the best unfinished target can at most reach the score that is compared here.
    """
    length = alive.tokens.shape[2]
    longest = plan.rules.max_lengths[alive.sentences]
    reachable = alive.log_probabilities.amax(dim=1) / penalty(longest, plan.alpha)
    done = (reachable <= alive.bar) | (longest <= length)
    if not done.any():
        return alive
    for i in done.nonzero().flatten().tolist():
        found = alive.finished[int(alive.sentences[i])]
        for target, log_probability in zip(
            alive.tokens[i].tolist(), alive.log_probabilities[i].tolist(), strict=True
        ):
            if len(found) < plan.n_best and log_probability > -math.inf:
                score = log_probability / penalty(length, plan.alpha)
                found.append(Hypothesis(tuple(target), score, log_probability, False))
    stays = (~done).nonzero().flatten()
    return replace(
        alive,
        sentences=alive.sentences[stays],
        tokens=alive.tokens[stays],
        log_probabilities=alive.log_probabilities[stays],
        rows=alive.rows[stays],
        bar=alive.bar[stays],
    )


def _ranked(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Finished ones by score, then cut ones as they came: by score too, unless a glossary rules."""
    return sorted(hypotheses, key=lambda one: -one.score if one.finished else math.inf)
