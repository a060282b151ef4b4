"""Translating through CTranslate2, with the answers that this program's own searches give.

CTranslate2's beam search walks as ours does (`decoding/beam.py`): of `2 * beam` candidates those
that end among the first `beam` are finished, the best `beam` that go on are kept, and a sentence is
done with `beam` finished targets. What differs, and what is done about it:

- *Scores.* It ranks by `log P / |Y| ** alpha`, and so chooses which finished targets it returns. It
  is asked for plain log-probabilities instead, and for as many targets as it gives; they are scored
  and ranked here. Its penalty must not be exactly 0: it would then stop at the first end.
- *Forbidden symbols.* It can forbid padding, unknown and start, but then gives their probability
  to the others. Instead each is spread over many tokens, whose sum is the same and none of which is
  among the best; and they end a target, as the end symbol does. Where one is returned even so, the
  sentence is decoded by torch.
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

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from glassformer.decoding.beam import penalty
from glassformer.decoding.engine import Engine, Job, SearchOptions
from glassformer.decoding.step import Hypothesis, Vocabulary
from glassformer.interchange.ctranslate2 import spread_names

__all__ = ["CTranslate2Engine", "Names", "Workers"]

_BATCH_TOKENS = 1024  # of sources, with padding: enough to fill a core, little enough to share out
_NO_PENALTY = 1e-12  # |Y| to this power is 1 in float32
_NOTHING = Hypothesis((), 0.0, 0.0, finished=True)  # the target of a blank source


class Workers(Protocol):
    """CTranslate2 translators of one model."""

    @property
    def many(self) -> Any:
        """For files: a worker for each core."""
        ...

    @property
    def alone(self) -> Any:
        """For one sentence, while nothing else is to do."""
        ...


@dataclass(frozen=True)
class Names:
    """What CTranslate2 calls the ids of the source and of the target; which of these are special.

    `spread`: how many tokens stand for each symbol that no target may hold.

    >>> Names(["a"], ["<pad>", "<unk>", "<s>", "</s>"], Vocabulary(), 2).ends
    ['</s>', '<pad>', '<unk>', '<s>', '<pad> 2', '<unk> 2', '<s> 2']
    """

    source: Sequence[str]
    target: Sequence[str]
    special: Vocabulary
    spread: int = 1

    @cached_property
    def ids(self) -> dict[str, int]:
        """The target's ids by their names; all that no target may hold is -1."""
        ids = {name: index for index, name in enumerate(self.target)}
        return ids | dict.fromkeys(self.ends[1:], -1)

    @cached_property
    def ends(self) -> list[str]:
        """The end symbol, and what may not be in a target."""
        never = self.special.never_produced
        spread = spread_names(self.target, never, self.spread)[len(self.target) :]
        return [self.target[i] for i in (self.special.eos_id, *never)] + spread


@dataclass(frozen=True)
class _Begun:
    """A job under way: the places of its sources that are not blank, and what will come."""

    job: Job
    places: Sequence[int]
    results: Sequence[Any]

    def done(self) -> bool:
        return all(result.done() for result in self.results)


@dataclass(frozen=True)
class CTranslate2Engine:
    """Workers that translate job after job, while the caller goes on.

    `torch` decodes what CTranslate2 would decode otherwise than we do. `extra_length`: what a
    target may have more than its source, in tokens. As many jobs are begun ahead of the answer as
    the workers' queue takes.
    """

    workers: Workers
    names: Names
    torch: Engine
    extra_length: int = 50
    at_once: int = 64

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
        if any(job.prefixes):
            return _Begun(job, (), ())
        places = [place for place, source in enumerate(job.sources) if source]
        if not places:
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
        names = self.names.source
        many = 1 if options.beam == 1 else room
        found: list[Any] = translator.translate_batch(
            [[names[index] for index in source] for source in sources],
            asynchronous=True,
            max_batch_size=_BATCH_TOKENS,
            batch_type="tokens",
            beam_size=options.beam,
            patience=many,
            num_hypotheses=many * options.beam,
            length_penalty=_NO_PENALTY,
            end_token=self.names.ends,
            return_end_token=True,
            return_scores=True,
            max_input_length=0,  # none is cut
            min_decoding_length=0,
            max_decoding_length=steps,
        )
        return found

    def _answer(self, begun: _Begun, options: SearchOptions) -> list[list[Hypothesis]]:
        """Wait for a job; what is not yet as ours is decoded again."""
        sources = begun.job.sources
        if any(begun.job.prefixes):
            return next(self.torch.decode([begun.job], options))
        answers = [[_NOTHING] for _ in sources]
        again: dict[int, list[int]] = defaultdict(list)
        for place, result in zip(begun.places, begun.results, strict=True):
            answers[place] = self._ranked(result.result(), options)
            if steps := self._steps_again(answers[place], len(sources[place]), options):
                again[steps].append(place)
        second = {
            steps: self._ask(
                self.workers.many, [sources[i] for i in places], options, steps=steps, room=2
            )
            for steps, places in again.items()
        }
        for steps, places in again.items():
            for place, result in zip(places, second[steps], strict=True):
                answers[place] = self._ranked(result.result(), options)
        strange = [place for place, found in enumerate(answers) if _forbidden(found)]
        if strange:
            job = Job([sources[place] for place in strange])
            for place, found in zip(strange, next(self.torch.decode([job], options)), strict=True):
                answers[place] = found
        return [found[: options.n_best] for found in answers]

    def _ranked(self, result: Any, options: SearchOptions) -> list[Hypothesis]:
        """All targets of a result, best first, those without an end symbol last."""
        ids, end, alpha = self.names.ids, self.names.special.eos_id, options.length_penalty
        found = []
        for tokens, log_probability in zip(result.hypotheses, result.scores, strict=True):
            target = tuple([ids[token] for token in tokens])
            score = log_probability / penalty(len(target), alpha)  # |Y| counts the end symbol
            ended = target[-1] == end
            found.append(
                Hypothesis(target[:-1] if ended else target, score, log_probability, ended)
            )
        return sorted(found, key=lambda one: (not one.finished, -one.score))

    def _steps_again(self, found: list[Hypothesis], length: int, options: SearchOptions) -> int:
        """Up to which step a sentence must be decoded again; 0: this is the answer."""
        if _forbidden(found):
            return 0
        most = length + self.extra_length
        longest = max(len(one.tokens) + one.finished for one in found)
        if options.beam == 1:
            return most if longest > most else 0
        if longest > most or not all(one.finished for one in found):
            return min(longest, most)
        # Dropped was what is less probable than all of these: its score can be this at most.
        dropped = min(one.log_probability for one in found) / penalty(
            longest, options.length_penalty
        )
        return longest if dropped > found[options.n_best - 1].score else 0


def _forbidden(found: list[Hypothesis]) -> bool:
    """Whether one of them ends in a symbol that no target may hold."""
    return any(one.tokens[-1:] == (-1,) for one in found)
