"""The tree of a beam search, from the candidates that the search shows to an observer.

The search is :func:`glassformer.decoding.beam.beam_search`, as the translator runs it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.beam import penalty
from glassformer.decoding.protocols import Candidate
from glassformer.tools.inspection.trace.schema import BeamGraph, BeamNode, Status
from glassformer.tools.inspection.trace.subwords import text_of

__all__ = ["Watch", "beam_graph"]

Ids: TypeAlias = tuple[int, ...]


@dataclass
class Watch:
    """Records the candidates in the search for one sentence, step by step.

    ``line`` is a target with the end symbol. The watch follows the line as long as the search keeps
    the line.
    """

    beam: int
    eos_id: int
    line: Ids = ()
    proposed: list[list[Candidate]] = field(default_factory=list)
    """The candidates of each step, at most 2 * beam, best first."""
    followed: tuple[Candidate, int] | None = None
    """The newest candidate of the line, and the candidate's rank in the step."""

    def observe(
        self,
        _sentence: int,
        candidates: list[Candidate],
        log_probabilities: Float[Tensor, "live vocab"],
    ) -> None:
        """Record a step of the search."""
        step = len(self.proposed)
        live = self.went_on(step - 1) if step else [Candidate((), 0.0, row=0)]
        self.proposed.append(candidates)
        for row, target in enumerate(live):
            if step < len(self.line) and target.tokens == self.line[:step]:
                totals = log_probabilities.new_tensor([each.log_probability for each in live])
                sums = totals[:, None] + log_probabilities  # in the order in which the search adds
                total = sums[row, self.line[step]]
                candidate = Candidate(self.line[: step + 1], float(total), row)
                self.followed = candidate, int((sums > total).sum())

    def over(self, step: int) -> bool:
        """Whether ``step`` was the last step of the search."""
        return step + 1 == len(self.proposed)

    def went_on(self, step: int) -> list[Candidate]:
        """The candidates that the search continued after a step, or would have continued."""
        return [each for each in self.proposed[step] if each.tokens[-1] != self.eos_id][: self.beam]

    def fall(self) -> tuple[int | None, int | None, float | None]:
        """The step that lost the line, and the line's rank and distance to the last kept candidate.

        The step, rank and distance are None if the search kept the line to the end.
        """
        if self.followed is None:
            return None, None, None
        last, rank = self.followed
        step = len(last.tokens) - 1
        ends = last.tokens[-1] == self.eos_id
        kept = self.proposed[step][: self.beam] if ends else self.went_on(step)
        if last.tokens in {each.tokens for each in kept}:
            return None, None, None
        lowest = min((each.log_probability for each in kept), default=math.inf)
        margin = lowest - last.log_probability
        return step, rank, margin if math.isfinite(margin) else None


def beam_graph(
    watch: Watch, answer: Ids, tokenizer: Tokenizer, *, alpha: float, steps: int
) -> BeamGraph:
    """The tree of the first ``steps`` steps, and the path to ``answer``, end symbol included."""
    nodes: list[BeamNode] = []

    def add(candidate: Candidate, rank: int, parent: int | None, status: Status) -> None:
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
            rank=rank,
            status=status,
        )
        nodes.append(node)

    add(Candidate((tokenizer.bos_id,), 0.0, row=0), 0, None, "alive")
    places: dict[Ids, int] = {(): 0}
    for step, proposed in enumerate(watch.proposed[:steps]):
        statuses = _statuses(watch, step)
        for rank, (candidate, status) in enumerate(zip(proposed, statuses, strict=True)):
            places[candidate.tokens] = len(nodes)
            add(candidate, rank, places[candidate.tokens[:-1]], status)
    prefixes = [answer[:length] for length in range(len(answer) + 1)]
    path = [places[prefix] for prefix in prefixes if prefix in places]
    finished = [node.id for node in nodes if node.status == "finished"]
    finished.sort(key=lambda place: -nodes[place].score)
    return BeamGraph(watch.beam, alpha, nodes, path, finished)


def _statuses(watch: Watch, step: int) -> Iterator[Status]:
    """The status of each candidate of a step."""
    continued = {each.tokens for each in watch.went_on(step)}
    for rank, candidate in enumerate(watch.proposed[step]):
        if candidate.tokens in continued:
            yield "open" if watch.over(step) else "alive"
        else:
            ended = candidate.tokens[-1] == watch.eos_id and rank < watch.beam
            yield "finished" if ended else "pruned"
