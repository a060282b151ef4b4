"""Beam search of a whole batch at once, in a fraction of the time.

The readable version is `beam_search` in `decoding/beam.py`. A test checks that both give equal
results (tests/decoding/fast/test_searches.py). Read `BeamState` first, and then `beam_search`. Each
of its steps has four parts: `_propose`, `_set_aside`, `_extend` and `_retire`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from glassformer.config import BEAM, LENGTH_PENALTY
from glassformer.decoding.beam import check_search, penalty
from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.fast.top_k import likeliest_or_nan, without_check
from glassformer.decoding.protocols import IMPOSSIBLE, Hypothesis, S, StepFunction

__all__ = ["BeamState", "beam_search"]


@dataclass(frozen=True)
class BeamState(Generic[S]):
    """The search between two steps; each move returns a new state.

    `live` sentences are still in the batch, each with `width` unfinished targets of equal length.
    `width` is 1 before the first step and `beam` as soon as there are that many. An impossible
    target has log-probability -inf and only fills its place.

    Tensors lie on the device, arrays and lists in the host's memory.
    """

    # The index of each live sentence in the input.
    sentences: Int64[Tensor, " live"]
    numbers: list[int]
    # The unfinished targets, without the start symbol, and their log-probabilities.
    tokens: Int64[Tensor, "live width length"]
    log_probabilities: Float[Tensor, "live width"]
    # The decoder's state, and the row of it that each unfinished target continues. Each step begins
    # with one selection of rows, for beams that change places and sentences that leave.
    decoder: S
    rows: Int64[Tensor, "live width"]
    all_stay: bool  # no sentence has left since the decoder's state was made
    # The finished targets of every sentence of the input; the lists grow in place.
    finished: list[list[Hypothesis]]
    # The score that an unfinished target must exceed, that of the `n_best`-th finished target:
    # -inf before there are so many, and inf if the sentence is done.
    bar: NDArray[np.floating]  # (live,)
    # True as soon as the most probable candidate of some step has ended.
    led: NDArray[np.bool_]  # (live,)


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
    hypotheses = _search(step, state, replace(settings, rules=without_check(rules)))
    if hypotheses is None:  # rarely: a row without a distribution, or an error
        hypotheses = _search(step, state, settings)
    return hypotheses or []


def _search(step: StepFunction[S], state: S, settings: _Settings) -> list[list[Hypothesis]] | None:
    """The search with these settings; None if `likeliest_or_nan` gives NaN."""
    alive = _begin(state, settings)
    while alive.numbers:
        alive, candidates = _propose(step, alive, settings)
        longer = _extend(alive, candidates, settings)
        scores = _read(longer, candidates, settings)
        if settings.rules.best_tokens is likeliest_or_nan and np.isnan(scores[:, 0]).any():
            return None
        _set_aside(alive, candidates, scores, settings)
        alive = _retire(longer, scores, settings)
    return [_ranked(targets)[: settings.n_best] or [IMPOSSIBLE] for targets in alive.finished]


def _begin(state: S, settings: _Settings) -> BeamState[S]:
    sentences = settings.rules.sentences()
    batch, device = len(sentences), sentences.device
    return BeamState(
        sentences,
        numbers=list(range(batch)),
        tokens=sentences.new_empty(batch, 1, 0),
        log_probabilities=torch.zeros(batch, 1, device=device),
        decoder=state,
        rows=sentences.unsqueeze(1),
        all_stay=True,
        finished=[[] for _ in range(batch)],
        bar=np.full(batch, -np.inf),
        led=np.zeros(batch, dtype=np.bool_),
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
    state = alive.decoder
    if length:
        state = _selected(state, alive.rows, all_stay=alive.all_stay)
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


def _selected(state: S, rows: Int64[Tensor, "sentences width"], *, all_stay: bool) -> S:
    """The given `rows` of any state; a line of `rows` has one sentence's unfinished targets.

    If `all_stay`, each sentence keeps its line, and only its targets change places. A state may
    have a faster `select_beams` of its own, which this function then calls.
    """
    select: Callable[..., S] | None = getattr(state, "select_beams", None)
    return state.select(rows.flatten()) if select is None else select(rows, all_stay=all_stay)


def _read(
    longer: BeamState[S], candidates: _Candidates, settings: _Settings
) -> NDArray[np.floating]:
    """The log-probabilities of the first `beam` candidates, -inf for candidates that do not end.

    The last column is the greatest score that an unfinished target of each sentence can reach: a
    log-probability never rises, and the penalty of the maximum length is the greatest divisor. It
    is -inf at the maximum length.

    Every step waits for the device here, and only a target that ends makes the step wait again.
    """
    sums = candidates.log_probabilities[:, : settings.beam]
    ends = candidates.ends[:, : settings.beam] | sums.isnan()
    longest = settings.rules.max_lengths[longer.sentences]
    reachable = longer.log_probabilities.amax(dim=1) / penalty(longest, settings.alpha)
    reachable = reachable.masked_fill(longest <= longer.tokens.shape[2], -torch.inf)
    columns = [sums.masked_fill(~ends, -torch.inf), reachable.unsqueeze(1)]
    return torch.cat(columns, dim=1).numpy(force=True)


def _set_aside(
    alive: BeamState[S],
    candidates: _Candidates,
    scores: NDArray[np.floating],
    settings: _Settings,
) -> None:
    """Add the targets that end at this step to the finished ones, and update the bar.

    An end counts only among the first `beam` candidates, like any other continuation.
    """
    ends = scores[:, :-1] > -math.inf
    if not ends.any():
        return
    owners, choices = np.nonzero(ends)
    rows, places = settings.rules.ids(owners), settings.rules.ids(choices)
    targets = alive.tokens[rows, candidates.parents[rows, places]].tolist()
    divisor = penalty(alive.tokens.shape[2] + 1, settings.alpha)  # the end symbol is part of |Y|
    for owner, target, log_p in zip(owners, targets, scores[owners, choices].tolist(), strict=True):
        hypothesis = Hypothesis(tuple(target), log_p / divisor, log_p, finished=True)
        alive.finished[alive.numbers[owner]].append(hypothesis)

    alive.led[:] |= ends[:, 0]
    for place in set(owners.tolist()):
        finished = alive.finished[alive.numbers[place]]
        alive.bar[place] = _bar(finished, settings, led=bool(alive.led[place]))


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


def _retire(alive: BeamState[S], scores: NDArray[np.floating], settings: _Settings) -> BeamState[S]:
    """Remove the sentences that are at their maximum length or cannot get better."""
    leaves = scores[:, -1] <= alive.bar.astype(scores.dtype)
    if not leaves.any():
        return replace(alive, all_stay=True)
    for place in np.flatnonzero(leaves).tolist():
        finished = alive.finished[alive.numbers[place]]
        if len(finished) < settings.n_best:
            finished += _unfinished(alive, place, settings)[: settings.n_best - len(finished)]
    kept = np.flatnonzero(~leaves)
    stays = settings.rules.ids(kept)
    return replace(
        alive,
        sentences=alive.sentences[stays],
        numbers=[alive.numbers[place] for place in kept],
        tokens=alive.tokens[stays],
        log_probabilities=alive.log_probabilities[stays],
        rows=alive.rows[stays],
        all_stay=False,
        bar=alive.bar[kept],
        led=alive.led[kept],
    )


def _unfinished(alive: BeamState[S], place: int, settings: _Settings) -> list[Hypothesis]:
    """The unfinished targets of a live sentence that are possible."""
    divisor = penalty(alive.tokens.shape[2], settings.alpha)
    targets, sums = alive.tokens[place].tolist(), alive.log_probabilities[place].tolist()
    return [
        Hypothesis(tuple(target), log_probability / divisor, log_probability, finished=False)
        for target, log_probability in zip(targets, sums, strict=True)
        if log_probability > -math.inf
    ]


def _ranked(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Finished targets by score; then unfinished ones in the order of the beam."""
    return sorted(hypotheses, key=lambda target: -target.score if target.finished else math.inf)
