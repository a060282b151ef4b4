"""A beam search, watched: the tree of all that it considered, from what its rules were asked.

The search itself is :func:`glassformer.decoding.beam.beam_search`, as the translator runs it. The
watch is a constraint that forbids nothing: at each step it is shown what every unfinished target
holds and how probable each next piece is, so it knows who went on without asking.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.beam import penalty
from glassformer.decoding.step import Hypothesis
from glassformer.inspection.pieces import readable
from glassformer.inspection.trace_records import BeamGraph, BeamNode

__all__ = ["EndsAfter", "Fall", "Watch", "beam_graph"]

Ids: TypeAlias = tuple[int, ...]
Status: TypeAlias = Literal["alive", "finished", "pruned", "open"]


@dataclass(frozen=True)
class Proposed:
    """One candidate of a step: the target so far and its next piece, with their place."""

    tokens: Ids
    step_log_probability: float
    log_probability: float
    rank: int


@dataclass(frozen=True)
class Fall:
    """The step at which a target lost its place, its rank there, and by how much it missed it."""

    step: int
    rank: int
    margin: float | None


@dataclass
class Watch:
    """What a search of one sentence considered, step by step.

    ``lines`` are targets (with their end symbol) that shall be reported at every step as long as
    the search has them, however improbable they are.
    """

    beam: int
    lines: Sequence[Ids] = ()
    proposed: list[list[Proposed]] = field(default_factory=list)
    """Of each step the 2 * beam best candidates, best first."""
    alive: list[set[Ids]] = field(default_factory=list)
    """What was unfinished at the beginning of each step."""
    followed: list[dict[Ids, Proposed]] = field(default_factory=list)
    """At each step, the candidates that ``lines`` ask for."""
    _sums: dict[Ids, Tensor] = field(default_factory=lambda: {(): torch.tensor(0.0)})

    def __call__(
        self,
        log_probabilities: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        _sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """Look, and change nothing."""
        rows = [tuple(row) for row in tokens.tolist()]
        before = torch.stack([self._sums.get(row, torch.tensor(-math.inf)) for row in rows])
        # In the search's own order of sums, so that equal numbers come out equal.
        sums = before.to(log_probabilities)[:, None] + log_probabilities  # (rows, vocab)
        vocab = sums.size(1)
        best, places = sums.flatten().topk(min(2 * self.beam, sums.numel()))

        def candidate(place: int, rank: int) -> Proposed:
            row, piece = divmod(place, vocab)
            step, total = log_probabilities[row, piece], sums[row, piece]
            return Proposed((*rows[row], piece), float(step), float(total), rank)

        possible = [
            place for place, one in zip(places.tolist(), best, strict=True) if one > -math.inf
        ]
        found = [candidate(place, rank) for rank, place in enumerate(possible)]
        self.alive.append({row for row, one in zip(rows, before, strict=True) if one > -math.inf})
        self.proposed.append(found)
        self._sums = {
            one.tokens: sums.flatten()[place].cpu()
            for one, place in zip(found, possible, strict=True)
        }
        length = tokens.size(1)
        asked = {line[: length + 1]: line for line in self.lines if len(line) > length}
        self.followed.append(
            {
                line: candidate(place, int((sums > sums.flatten()[place]).sum()))
                for short, line in asked.items()
                if short[:-1] in self.alive[-1]
                for place in [rows.index(short[:-1]) * vocab + short[-1]]
            }
        )
        return log_probabilities

    def select(self, _sentences: Sequence[int]) -> Watch:
        """Itself: it watches one sentence."""
        return self

    def needed(self, _sentence: int) -> int:
        """Nothing."""
        return 0

    def fall(self, line: Ids, eos_id: int) -> Fall | None:
        """Where the search lost one of ``lines``; None where it had it to its own end."""
        for step, followed in enumerate(self.followed):
            one = followed.get(line)
            if one is None:
                return None  # it has ended
            if one.tokens[-1] == eos_id:
                kept = one.rank < self.beam
                others = self.proposed[step][: self.beam]
            else:
                kept = step + 1 == len(self.alive) or one.tokens in self.alive[step + 1]
                others = self.went_on(step)
            if not kept:
                least = min((other.log_probability for other in others), default=math.inf)
                margin = least - one.log_probability
                return Fall(step, one.rank, margin if math.isfinite(margin) else None)
        return None

    def went_on(self, step: int) -> list[Proposed]:
        """The candidates of a step that the search had at the beginning of the next."""
        following = self.alive[step + 1] if step + 1 < len(self.alive) else set[Ids]()
        return [one for one in self.proposed[step] if one.tokens in following]


@dataclass(frozen=True)
class EndsAfter:
    """The target ends after ``length`` pieces: what a prefix with the end symbol asks for.

    >>> EndsAfter(0, 2)(torch.zeros(1, 4), torch.zeros(1, 0).long(), torch.tensor([0])).tolist()
    [[-inf, -inf, 0.0, -inf]]
    """

    length: int
    eos_id: int

    def __call__(
        self,
        log_probabilities: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        _sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """-inf everywhere but at the end symbol, where the end shall be."""
        if tokens.size(1) != self.length:
            return log_probabilities
        ids = torch.arange(log_probabilities.size(1), device=log_probabilities.device)
        return log_probabilities.masked_fill(ids != self.eos_id, -torch.inf)

    def select(self, _sentences: Sequence[int]) -> EndsAfter:
        """Itself."""
        return self

    def needed(self, _sentence: int) -> int:
        """The pieces before the end are asked for by others."""
        return 0


def beam_graph(
    watch: Watch, found: Hypothesis, tokenizer: Tokenizer, *, alpha: float, steps: int
) -> BeamGraph:
    """The tree of the first ``steps`` steps, and the way to what was found."""
    start = Proposed((tokenizer.bos_id,), 0.0, 0.0, 0)
    nodes = [_node(0, None, start, tokenizer, status="alive", score=0.0)]
    places: dict[Ids, int] = {(): 0}
    for step, proposed in enumerate(watch.proposed[:steps]):
        statuses = _statuses(watch, step, tokenizer.eos_id)
        for one, status in zip(proposed, statuses, strict=True):
            score = one.log_probability / penalty(len(one.tokens), alpha)
            parent, places[one.tokens] = places[one.tokens[:-1]], len(nodes)
            nodes.append(_node(len(nodes), parent, one, tokenizer, status=status, score=score))
    way = (*found.tokens, tokenizer.eos_id) if found.finished else found.tokens
    ways = [way[:length] for length in range(len(way) + 1)]
    best = [places[one] for one in ways if one in places]
    finished = [node.id for node in nodes if node.status == "finished"]
    finished.sort(key=lambda place: -nodes[place].score)
    return BeamGraph(watch.beam, alpha, nodes, best, finished)


def _statuses(watch: Watch, step: int, eos_id: int) -> Iterator[Status]:
    """What became of each candidate of a step."""
    on = {one.tokens for one in watch.went_on(step)}
    room = watch.beam if step + 1 == len(watch.proposed) else 0
    for one in watch.proposed[step]:
        if one.tokens[-1] == eos_id:
            yield "finished" if one.rank < watch.beam else "pruned"
        elif one.tokens in on:
            yield "alive"
        elif room:
            room -= 1
            yield "open"
        else:
            yield "pruned"


def _node(
    place: int,
    parent: int | None,
    one: Proposed,
    tokenizer: Tokenizer,
    *,
    status: Status,
    score: float,
) -> BeamNode:
    piece = tokenizer.id_to_piece(one.tokens[-1])
    return BeamNode(
        id=place,
        parent=parent,
        step=-1 if parent is None else len(one.tokens) - 1,
        token=one.tokens[-1],
        piece=piece,
        text=readable(piece),
        step_log_probability=one.step_log_probability,
        log_probability=one.log_probability,
        score=score,
        rank=one.rank,
        status=status,
    )
