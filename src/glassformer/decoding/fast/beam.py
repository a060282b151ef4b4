"""Beam search of a whole batch at once, in a fraction of the time.

The readable version is `beam_search` in `decoding/beam.py`. A test checks that both give equal
results (tests/decoding/fast/test_searches.py). Read `BeamState` first, and then `beam_search`. Each
of its steps has four parts: `_propose`, `_set_aside`, `_extend` and `_retire`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from glassformer.config import BEAM, LENGTH_PENALTY
from glassformer.decoding.beam import check_search, penalty
from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.protocols import IMPOSSIBLE, Hypothesis, S, StepFunction

__all__ = ["BeamState", "beam_search"]


@dataclass(frozen=True)
class BeamState(Generic[S]):
    """The search between two steps; each move returns a new state.

    `live` sentences are still in the batch, each with `width` unfinished targets of equal length.
    `width` is 1 before the first step and `beam` as soon as there are that many. An impossible
    target has log-probability -inf and only fills its place.
    """

    # The index of each live sentence in the input.
    sentences: Int64[Tensor, " live"]
    # The unfinished targets, without the start symbol, and their log-probabilities.
    tokens: Int64[Tensor, "live width length"]
    log_probabilities: Float[Tensor, "live width"]
    # The decoder's state, and the row of it that each unfinished target continues. Each step begins
    # with one selection of rows, for beams that change places and sentences that leave.
    decoder: S
    rows: Int64[Tensor, "live width"]
    # The finished targets of every sentence of the input; the lists grow in place.
    finished: list[list[Hypothesis]]
    # The score that an unfinished target must exceed, that of the `n_best`-th finished target:
    # -inf before there are so many, and inf if the sentence is done.
    bar: Float[Tensor, " live"]
    # True as soon as the most probable candidate of some step has ended.
    led: Bool[Tensor, " live"]


@dataclass(frozen=True)
class _Candidates:
    """The most probable next targets, best first: each extends its parent by one token."""

    log_probabilities: Float[Tensor, "live choices"]
    parents: Int64[Tensor, "live choices"]
    tokens: Int64[Tensor, "live choices"]
    ends: Bool[Tensor, "live choices"]


@dataclass(frozen=True)
class _Settings:
    """The parameters of one search."""

    beam: int
    alpha: float
    n_best: int
    rules: OutputRules


@torch.no_grad()
def beam_search(
    step: StepFunction[S],
    state: S,
    rules: OutputRules,
    *,
    beam: int = BEAM,
    length_penalty: float = LENGTH_PENALTY,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """At most `n_best` targets of each sentence, best first, as in the readable version.

    `state` has one row for each sentence; the search repeats it. A sentence that is done leaves the
    batch. Raises `ValueError` for a parameter out of its range.

    >>> class NoState:
    ...     def select(self, rows):
    ...         return self
    >>> def step(tokens, state):  # 4 is more probable, but only 5 ends for certain
    ...     probability = torch.zeros(6, 6)
    ...     probability[2] = torch.tensor([0, 0, 0, 0, 0.6, 0.4])
    ...     probability[4] = torch.tensor([0, 0, 0, 0.5, 0.3, 0.2])
    ...     probability[5] = torch.tensor([0, 0, 0, 1.0, 0, 0])
    ...     return probability[tokens].log(), state
    >>> beam_search(step, NoState(), OutputRules(torch.tensor([9])), beam=2)[0][0].tokens
    (5,)
    """
    check_search(beam, n_best, length_penalty)
    settings = _Settings(beam, length_penalty, n_best, rules)
    alive = _begin(state, settings)
    while len(alive.sentences):
        alive, candidates = _propose(step, alive, settings)
        alive = _set_aside(alive, candidates, settings)
        alive = _extend(alive, candidates, settings)
        alive = _retire(alive, settings)
    return [_ranked(targets)[:n_best] or [IMPOSSIBLE] for targets in alive.finished]


def _begin(state: S, settings: _Settings) -> BeamState[S]:
    sentences = settings.rules.sentences()
    batch, device = len(sentences), sentences.device
    return BeamState(
        sentences,
        tokens=sentences.new_empty(batch, 1, 0),
        log_probabilities=torch.zeros(batch, 1, device=device),
        decoder=state,
        rows=sentences.unsqueeze(1),
        finished=[[] for _ in range(batch)],
        bar=torch.full((batch,), -torch.inf, device=device),
        led=torch.zeros(batch, dtype=torch.bool, device=device),
    )


def _propose(
    step: StepFunction[S], alive: BeamState[S], settings: _Settings
) -> tuple[BeamState[S], _Candidates]:
    """One step of the decoder, and the best continuations of each sentence.

    It proposes 2 * beam continuations. Each target has only one that ends, so at least `beam` of
    the proposed continuations are unfinished.
    """
    live, width, length = alive.tokens.shape
    tokens = alive.tokens.flatten(0, 1)  # (live * width, length)
    last = tokens[:, -1] if length else settings.rules.start(len(tokens))
    state = _selected(alive.decoder, alive.rows) if length else alive.decoder
    logits, decoder = step(last, state)
    owners = alive.sentences.repeat_interleave(width)
    # The best of a sentence are among the best of its rows, so other tokens need no sum.
    likeliest, ids = settings.rules.best(logits, tokens, owners, count=2 * settings.beam)
    kept = likeliest.shape[1]
    sums = alive.log_probabilities.unsqueeze(2) + likeliest.view(live, width, kept)
    best, places = sums.flatten(1).topk(min(2 * settings.beam, width * kept), dim=1)
    parents = places // kept  # (live, choices)
    chosen = ids.view(live, -1).gather(1, places)
    ends = chosen == settings.rules.vocabulary.eos_id
    rows = torch.arange(live * width, device=tokens.device).view(live, width)
    return replace(alive, decoder=decoder, rows=rows), _Candidates(best, parents, chosen, ends)


def _selected(state: S, rows: Int64[Tensor, "sentences width"]) -> S:
    """The given `rows` of any state; a line of `rows` has one sentence's unfinished targets.

    A state may have a faster `select_beams` of its own, which this function then calls.
    """
    select: Callable[[Tensor], S] | None = getattr(state, "select_beams", None)
    return state.select(rows.flatten()) if select is None else select(rows)


def _set_aside(alive: BeamState[S], candidates: _Candidates, settings: _Settings) -> BeamState[S]:
    """Move the targets that end at this step to the finished ones, and update the bar.

    An end counts only among the first `beam` candidates, like any other continuation.
    """
    ends = candidates.ends & candidates.log_probabilities.isfinite()
    places = ends[:, : settings.beam].nonzero(as_tuple=True)
    if not len(places[0]):
        return alive
    owners = alive.sentences[places[0]].tolist()
    targets = alive.tokens[places[0], candidates.parents[places]].tolist()
    sums = candidates.log_probabilities[places].tolist()
    for sentence, target, log_probability in zip(owners, targets, sums, strict=True):
        # The end symbol is part of |Y|.
        score = log_probability / penalty(len(target) + 1, settings.alpha)
        alive.finished[sentence].append(Hypothesis(tuple(target), score, log_probability, True))

    led = alive.led | ends[:, 0]
    bars = [
        _bar(alive.finished[sentence], settings, led=leads)
        for sentence, leads in zip(alive.sentences.tolist(), led.tolist(), strict=True)
    ]
    return replace(alive, led=led, bar=candidates.log_probabilities.new_tensor(bars))


def _bar(finished: list[Hypothesis], settings: _Settings, *, led: bool) -> float:
    if led and len(finished) >= settings.beam:
        return math.inf
    if len(finished) < settings.n_best:
        return -math.inf
    return _ranked(finished)[settings.n_best - 1].score


def _extend(alive: BeamState[S], candidates: _Candidates, settings: _Settings) -> BeamState[S]:
    """Continue the best candidates that do not end."""
    # A stable sort moves candidates that end to the back, and keeps the others in their order.
    order = candidates.ends.int().argsort(dim=1, stable=True)[:, : settings.beam]
    parents = candidates.parents.gather(1, order)  # (live, width)
    # If a small vocabulary has too few continuations, an ended one fills a place, impossible.
    sums = candidates.log_probabilities.masked_fill(candidates.ends, -torch.inf).gather(1, order)
    before = alive.tokens.gather(1, parents.unsqueeze(2).expand(-1, -1, alive.tokens.shape[2]))
    newest = candidates.tokens.gather(1, order).unsqueeze(2)
    return replace(
        alive,
        tokens=torch.cat([before, newest], dim=2),
        log_probabilities=sums,
        rows=alive.rows.gather(1, parents),
    )


def _retire(alive: BeamState[S], settings: _Settings) -> BeamState[S]:
    """Remove the sentences that are at their maximum length or cannot get better.

    A log-probability never rises, and the penalty of the maximum length is the greatest divisor.
    Their quotient is the greatest score that an unfinished target can reach.
    """
    length = alive.tokens.shape[2]
    longest = settings.rules.max_lengths[alive.sentences]
    reachable = alive.log_probabilities.amax(dim=1) / penalty(longest, settings.alpha)
    leaves = (reachable <= alive.bar) | (longest <= length)
    if not leaves.any():
        return alive
    for i in leaves.nonzero().flatten().tolist():
        finished = alive.finished[int(alive.sentences[i])]
        for target, log_probability in zip(
            alive.tokens[i].tolist(), alive.log_probabilities[i].tolist(), strict=True
        ):
            if len(finished) < settings.n_best and log_probability > -math.inf:
                score = log_probability / penalty(length, settings.alpha)
                finished.append(Hypothesis(tuple(target), score, log_probability, False))
    stays = (~leaves).nonzero().flatten()
    return replace(
        alive,
        sentences=alive.sentences[stays],
        tokens=alive.tokens[stays],
        log_probabilities=alive.log_probabilities[stays],
        rows=alive.rows[stays],
        bar=alive.bar[stays],
        led=alive.led[stays],
    )


def _ranked(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Finished targets by score; then unfinished ones in the order of the beam."""
    return sorted(hypotheses, key=lambda target: -target.score if target.finished else math.inf)
