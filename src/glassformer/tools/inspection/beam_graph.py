"""Records a beam search as a tree by passing it a constraint that observes and forbids nothing.

The search itself is :func:`glassformer.decoding.beam.beam_search`, as the translator runs it. At
each step the constraint receives every unfinished target and the probability of each next piece.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.beam import penalty
from glassformer.tools.inspection.trace.schema import BeamGraph, BeamNode, Status
from glassformer.tools.inspection.trace.subwords import text_of

__all__ = ["Watch", "beam_graph"]

Ids: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Proposed:
    """One candidate of a step: the target with its next piece, and its rank in the step."""

    tokens: Ids
    log_probability: float
    rank: int


@dataclass
class Watch:
    """Records the candidates of the search of one sentence, step by step.

    ``line`` is a target with its end symbol. The watch follows it as long as the search has it,
    however improbable it is.
    """

    beam: int
    eos_id: int
    line: Ids = ()
    alive: list[set[Ids]] = field(default_factory=list)
    """The unfinished targets at the beginning of each step."""
    proposed: list[list[Proposed]] = field(default_factory=list)
    """The candidates of each step, at most 2 * beam, best first."""
    followed: list[Proposed] = field(default_factory=list)
    """The candidates of the line, from the first step on."""
    _sums: dict[Ids, float] = field(default_factory=lambda: {(): 0.0})

    def __call__(
        self,
        log_probabilities: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        _sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """Record the step; the log-probabilities stay as they are."""
        rows = [tuple(row) for row in tokens.tolist()]
        before = log_probabilities.new_tensor([self._sums.get(row, -math.inf) for row in rows])
        sums = (before[:, None] + log_probabilities).flatten()  # added as the search adds
        vocab = log_probabilities.size(1)

        def candidate(place: int, rank: int) -> Proposed:
            ids = (*rows[place // vocab], place % vocab)
            return Proposed(ids, float(sums[place]), rank)

        places = sums.topk(min(2 * self.beam, len(sums))).indices.tolist()
        possible = [place for place in places if sums[place] > -math.inf]
        candidates = [candidate(place, rank) for rank, place in enumerate(possible)]
        self.alive.append({row for row in rows if row in self._sums})
        self.proposed.append(candidates)
        length = tokens.size(1)
        if len(self.line) > length and self.line[:length] in self.alive[-1]:
            place = rows.index(self.line[:length]) * vocab + self.line[length]
            self.followed.append(candidate(place, int((sums > sums[place]).sum())))
        # A finished candidate may stay in the beam, to fill an empty place: it does not go on.
        unfinished = [each for each in candidates if each.tokens[-1] != self.eos_id]
        self._sums = {each.tokens: each.log_probability for each in unfinished}
        return log_probabilities

    def select(self, _sentences: Sequence[int]) -> Watch:
        """Itself: it watches a search of one sentence."""
        return self

    def needed(self, _sentence: int) -> int:
        """The watch needs no steps."""
        return 0

    def over(self, step: int) -> bool:
        """Whether the search was done after this step."""
        return step + 1 == len(self.alive)

    def went_on(self, step: int) -> list[Proposed]:
        """The candidates of a step that the search continued, or would have continued."""
        unfinished = [each for each in self.proposed[step] if each.tokens[-1] != self.eos_id]
        if self.over(step):
            return unfinished[: self.beam]
        return [each for each in unfinished if each.tokens in self.alive[step + 1]]

    def fall(self) -> tuple[int | None, int | None, float | None]:
        """The step that lost the line, its rank there, and its distance to the last kept.

        Nones if the line stayed to its end, or to the search's.
        """
        if not self.followed:
            return None, None, None
        step, last = len(self.followed) - 1, self.followed[-1]
        ends = last.tokens[-1] == self.eos_id
        kept = self.proposed[step][: self.beam] if ends else self.went_on(step)
        if last.tokens in {each.tokens for each in kept}:
            return None, None, None
        lowest = min((each.log_probability for each in kept), default=math.inf)
        margin = lowest - last.log_probability
        return step, last.rank, margin if math.isfinite(margin) else None


def beam_graph(
    watch: Watch, answer: Ids, tokenizer: Tokenizer, *, alpha: float, steps: int
) -> BeamGraph:
    """The tree of the first ``steps`` steps, and the path to ``answer``, end symbol included."""
    nodes: list[BeamNode] = []

    def add(candidate: Proposed, parent: int | None, status: Status) -> None:
        length, piece = len(candidate.tokens), tokenizer.subword(candidate.tokens[-1])
        before = 0.0 if parent is None else nodes[parent].log_probability
        node = BeamNode(
            id=len(nodes),
            parent=parent,
            step=-1 if parent is None else length - 1,
            token=candidate.tokens[-1],
            piece=piece,
            text=text_of(piece),
            step_log_probability=candidate.log_probability - before,
            log_probability=candidate.log_probability,
            score=candidate.log_probability / penalty(length, alpha),
            rank=candidate.rank,
            status=status,
        )
        nodes.append(node)

    add(Proposed((tokenizer.bos_id,), 0.0, 0), None, "alive")
    places: dict[Ids, int] = {(): 0}
    for step, proposed in enumerate(watch.proposed[:steps]):
        for candidate, status in zip(proposed, _statuses(watch, step), strict=True):
            places[candidate.tokens] = len(nodes)
            add(candidate, places[candidate.tokens[:-1]], status)
    prefixes = [answer[:length] for length in range(len(answer) + 1)]
    path = [places[prefix] for prefix in prefixes if prefix in places]
    finished = [node.id for node in nodes if node.status == "finished"]
    finished.sort(key=lambda place: -nodes[place].score)
    return BeamGraph(watch.beam, alpha, nodes, path, finished)


def _statuses(watch: Watch, step: int) -> Iterator[Status]:
    """The status of each candidate of a step."""
    continued = {each.tokens for each in watch.went_on(step)}
    for candidate in watch.proposed[step]:
        if candidate.tokens in continued:
            yield "open" if watch.over(step) else "alive"
        else:
            ended = candidate.tokens[-1] == watch.eos_id and candidate.rank < watch.beam
            yield "finished" if ended else "pruned"
