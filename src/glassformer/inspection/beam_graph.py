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
from glassformer.decoding.protocols import Hypothesis
from glassformer.inspection.trace.records import BeamGraph, BeamNode
from glassformer.inspection.trace.subwords import readable

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

    ``line`` is a target (with its end symbol) that is followed as long as the search has it,
    however improbable it is.
    """

    beam: int
    eos_id: int
    line: Ids = ()
    alive: list[set[Ids]] = field(default_factory=list)
    """What was unfinished at the beginning of each step."""
    proposed: list[list[Proposed]] = field(default_factory=list)
    """Of each step the 2 * beam best candidates, best first."""
    followed: list[Proposed] = field(default_factory=list)
    """The line's own candidates, of the first step and on."""
    _sums: dict[Ids, float] = field(default_factory=lambda: {(): 0.0})

    def __call__(
        self,
        log_probabilities: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        _sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """Look, and change nothing."""
        rows = [tuple(row) for row in tokens.tolist()]
        before = log_probabilities.new_tensor([self._sums.get(row, -math.inf) for row in rows])
        sums = (before[:, None] + log_probabilities).flatten()  # added as the search adds
        vocab = log_probabilities.size(1)

        def candidate(place: int, rank: int) -> Proposed:
            ids = (*rows[place // vocab], place % vocab)
            return Proposed(
                ids, float(log_probabilities.flatten()[place]), float(sums[place]), rank
            )

        best, places = sums.topk(min(2 * self.beam, len(sums)))
        possible = places[best > -math.inf].tolist()
        found = [candidate(place, rank) for rank, place in enumerate(possible)]
        self.alive.append({row for row in rows if row in self._sums})
        self.proposed.append(found)
        length = tokens.size(1)
        if len(self.line) > length and self.line[:length] in self.alive[-1]:
            place = rows.index(self.line[:length]) * vocab + self.line[length]
            self.followed.append(candidate(place, int((sums > sums[place]).sum())))
        # One that ended may stay in the beam, to fill an empty place: it does not go on.
        self._sums = {
            one.tokens: one.log_probability for one in found if one.tokens[-1] != self.eos_id
        }
        return log_probabilities

    def select(self, _sentences: Sequence[int]) -> Watch:
        """Itself: it watches one sentence."""
        return self

    def needed(self, _sentence: int) -> int:
        """Nothing."""
        return 0

    def over(self, step: int) -> bool:
        """Whether the search was done after this step."""
        return step + 1 == len(self.alive)

    def went_on(self, step: int) -> list[Proposed]:
        """The candidates of a step that went on, or would have if the search had."""
        unended = [one for one in self.proposed[step] if one.tokens[-1] != self.eos_id]
        if self.over(step):
            return unended[: self.beam]
        return [one for one in unended if one.tokens in self.alive[step + 1]]

    def fall(self) -> Fall | None:
        """Where the search lost the line; None where it had it to its end, or the search's."""
        if not self.followed:
            return None
        step, last = len(self.followed) - 1, self.followed[-1]
        ends = last.tokens[-1] == self.eos_id
        kept = self.proposed[step][: self.beam] if ends else self.went_on(step)
        if last.tokens in {one.tokens for one in kept}:
            return None
        margin = min((one.log_probability for one in kept), default=math.inf) - last.log_probability
        return Fall(step, last.rank, margin if math.isfinite(margin) else None)


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
        statuses = _statuses(watch, step)
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


def _statuses(watch: Watch, step: int) -> Iterator[Status]:
    """What became of each candidate of a step."""
    on = {one.tokens for one in watch.went_on(step)}
    for one in watch.proposed[step]:
        if one.tokens in on:
            yield "open" if watch.over(step) else "alive"
        else:
            ended = one.tokens[-1] == watch.eos_id and one.rank < watch.beam
            yield "finished" if ended else "pruned"


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
