"""Translating through CTranslate2, with the answers that this program's own searches give.

CTranslate2's beam search walks as ours does (`decoding/beam.py`): of the best candidates those that
end among the first `beam` are finished, the best `beam` that go on are kept, and a sentence is done
with `beam` finished targets. What differs, and what is done about it:

- *Scores.* It ranks by `log P / |Y| ** alpha`, and so chooses which finished targets it returns. It
  is asked for plain log-probabilities instead, and for as many targets as it gives; they are scored
  and ranked here.
- *Forbidden symbols.* It can forbid padding, unknown and start, but then gives their probability
  to the others, so that scores change. Instead they end a target, as the end symbol does. A trained
  model hardly ever writes one. Where it does, the sentence is decoded again with room for twice as
  many; if what took their places can still be among the `n_best`, by torch.
- *Length.* It knows one maximum for all sentences of a call. One whose targets pass its own maximum
  is decoded again, up to there.
- *More than `beam` finished.* It returns the `beam` most probable. Where one that it dropped could
  still be among the `n_best` by its score, the sentence is decoded again with room for twice as
  many, up to the step at which the search ended: often where `n_best` is the beam, else seldom.
- *Forced prefixes* count nothing in its scores, and the seed of its *sampling* is the whole
  process's: both are torch's work.

What remains are ties and rounding: sums are in another order, so that two candidates whose
log-probabilities differ by about 1e-6 may change places.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from glassformer.config import EXTRA_LENGTH
from glassformer.decoding.beam import penalty
from glassformer.decoding.engine import Engine, Job, SearchOptions
from glassformer.decoding.protocols import Hypothesis, Vocabulary
from glassformer.interchange.ctranslate2.threads import Workers

__all__ = ["CTranslate2Engine"]

_BATCH_TOKENS = 512  # of sources, with padding: enough to fill a core, little enough to share out
_NO_PENALTY = 1e-12  # |Y| to this power is 1 in float32; at 0 the search stops at the first end
_NOTHING = Hypothesis((), 0.0, 0.0, finished=True)  # the target of a blank source


class _Found(NamedTuple):
    """A target as CTranslate2 names it, with the symbol that ends it, and its score as ours."""

    names: list[str]
    score: float
    log_probability: float
    finished: bool


class _Begun(NamedTuple):
    """A job under way: the places of its sources that are not blank, and what will come."""

    job: Job
    places: Sequence[int]
    results: Sequence[Any]

    def done(self) -> bool:
        return all(result.done() for result in self.results)


@dataclass(frozen=True)
class CTranslate2Engine:
    """Workers that translate job after job, while the caller goes on.

    `source_names` and `target_names`: what the workers' model calls the ids, of which `special` are
    the target's special ones. `torch` decodes what CTranslate2 would decode otherwise than we do.
    `extra_length`: what a target may have more than its source, in tokens. As many jobs are begun
    ahead of the answer as the workers' queue takes.
    """

    workers: Workers
    source_names: Sequence[str]
    target_names: Sequence[str]
    special: Vocabulary
    torch: Engine
    extra_length: int = EXTRA_LENGTH
    at_once: int = 1024  # it sorts them by tokens, so that batches are full and little is padding

    def decode(
        self, jobs: Iterable[Job], options: SearchOptions
    ) -> Iterator[list[list[Hypothesis]]]:
        """The answers in the order of the jobs."""
        if options.sampling is not None:
            yield from self.torch.decode(jobs, options)
            return
        waiting: deque[_Begun] = deque()
        for job in jobs:
            waiting.append(self._begin(job, options, alone=not waiting))
            while waiting and (not job.sources or waiting[0].done()):
                yield self._answer(waiting.popleft(), options)
        while waiting:
            yield self._answer(waiting.popleft(), options)

    def _begin(self, job: Job, options: SearchOptions, *, alone: bool) -> _Begun:
        places = [place for place, source in enumerate(job.sources) if source]
        if not places or any(job.prefixes):
            return _Begun(job, (), ())
        sources = [job.sources[place] for place in places]
        translator = self.workers.alone if alone and len(places) == 1 else self.workers.many
        steps = max(map(len, sources)) + self.extra_length
        return _Begun(job, places, self._ask(translator, sources, options, steps=steps))

    def _ask(
        self,
        translator: Any,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        *,
        steps: int,
        room: int = 1,
    ) -> list[Any]:
        """What will be the results; `room` times `beam` targets are kept of each source."""
        kept = 1 if options.beam == 1 else room * options.beam
        found: list[Any] = translator.translate_batch(
            [[self.source_names[index] for index in source] for source in sources],
            asynchronous=True,
            max_batch_size=_BATCH_TOKENS,
            batch_type="tokens",
            beam_size=options.beam,
            patience=room,
            num_hypotheses=kept,
            length_penalty=_NO_PENALTY,
            end_token=self._ends,
            return_end_token=True,
            return_scores=options.scored or options.beam > 1,
            max_input_length=0,  # none is cut
            min_decoding_length=0,
            max_decoding_length=steps,
        )
        return found

    @cached_property
    def _ends(self) -> list[str]:
        """The end symbol, and what may not be in a target."""
        return [self.target_names[i] for i in (self.special.eos_id, *self.special.never_produced)]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.target_names)}

    def _answer(self, begun: _Begun, options: SearchOptions) -> list[list[Hypothesis]]:
        """Wait for a job; what is not yet as ours is decoded again."""
        sources = begun.job.sources
        if any(begun.job.prefixes):
            return next(self.torch.decode([begun.job], options))
        found = {
            place: self._ranked(result.result(), options)
            for place, result in zip(begun.places, begun.results, strict=True)
        }
        again: dict[int, list[int]] = defaultdict(list)
        for place, targets in found.items():
            if steps := self._steps_again(targets, len(sources[place]), options):
                again[steps].append(place)
        asked: list[tuple[int, Any]] = []  # all are under way before one is waited for
        for steps, places in again.items():
            chosen = [sources[place] for place in places]
            results = self._ask(self.workers.many, chosen, options, steps=steps, room=2)
            asked += zip(places, results, strict=True)
        for place, result in asked:
            more = self._ranked(result.result(), options)
            if self._forbidden(found[place]):
                more = self._without_forbidden(found[place], more, options) or found[place]
            found[place] = more

        answers = [[_NOTHING] for _ in sources]
        for place, targets in found.items():
            answers[place] = [self._hypothesis(one) for one in targets[: options.n_best]]
        strange = [place for place, targets in found.items() if self._forbidden(targets)]
        if strange:
            job = Job([sources[place] for place in strange])
            for place, own in zip(strange, next(self.torch.decode([job], options)), strict=True):
                answers[place] = own
        return answers

    def _ranked(self, result: Any, options: SearchOptions) -> list[_Found]:
        """All targets of a result, best first, those without an end symbol last."""
        end, alpha = self._ends[0], options.length_penalty
        totals = result.scores or [math.nan]
        found = [
            # |Y| counts the end symbol.
            _Found(names, total / penalty(len(names), alpha), total, names[-1] == end)
            for names, total in zip(result.hypotheses, totals, strict=True)
        ]
        found.sort(key=lambda one: (not one.finished, -one.score))
        return found

    def _hypothesis(self, one: _Found) -> Hypothesis:
        ids = tuple(map(self._ids.__getitem__, one.names[:-1] if one.finished else one.names))
        return Hypothesis(ids, one.score, one.log_probability, one.finished)

    def _forbidden(self, found: Sequence[_Found]) -> bool:
        """Whether one of them ends in a symbol that no target may hold."""
        return any(not one.finished and one.names[-1] in self._ends for one in found)

    def _steps_again(self, found: Sequence[_Found], length: int, options: SearchOptions) -> int:
        """Up to which step a sentence must be decoded again; 0: this is the answer."""
        most = length + self.extra_length
        longest = max(len(one.names) for one in found)
        if options.beam == 1:
            return most if longest > most and not self._forbidden(found) else 0
        if self._forbidden(found):
            return most
        if longest > most or not found[-1].finished:  # the last is the worst
            return min(longest, most)
        # Dropped was what is less probable than all of these: its score can be this at most.
        least = min(one.log_probability for one in found)
        dropped = least / penalty(longest, options.length_penalty)
        return longest if dropped > found[options.n_best - 1].score else 0

    def _without_forbidden(
        self, found: list[_Found], more: list[_Found], options: SearchOptions
    ) -> list[_Found]:
        """The answer of a search that knows no forbidden symbol, from one that took them for ends
        and from the same with twice the room; nothing where they do not tell.

        Each forbidden end stood where another candidate of that step, less probable, would have
        been. If those all ended, the search was over when `found` was; if none did, it went on to
        the last of `beam` targets. The answer must be the same.
        """
        over = max(len(one.names) for one in found)
        ended = sorted((one for one in more if one.finished), key=lambda one: len(one.names))
        if len(ended) < options.beam:
            return []
        last = len(ended[options.beam - 1].names)
        best = [one for one in more if one.finished and len(one.names) <= last][: options.n_best]
        # Dropped was what is less probable than all that were returned.
        hidden = [min(one.log_probability for one in more) / penalty(last, options.length_penalty)]
        hidden += [one.score for one in more if not one.finished]
        certain = max(len(one.names) for one in best) <= over and max(hidden) < best[-1].score
        return best if certain else []
