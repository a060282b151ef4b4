"""Translating through CTranslate2, with the answers that this program's own searches give.

CTranslate2's beam search walks as ours does (`decoding/beam.py`): of the best candidates those that
end among the first `beam` are finished, and the best `beam` that go on are kept. What differs, and
what is done about it:

- *The end of a search.* Ours goes on as long as an unfinished target can still win. CTranslate2
  stops as soon as the most probable candidate of some step has ended and twice `beam` targets are
  finished: what comes after so many ends does not win.
- *Scores.* It ranks by `log P / |Y| ** alpha`, and so chooses which finished targets it returns. It
  is asked for plain log-probabilities instead, and for twice `beam` targets; they are scored and
  ranked here. If one that it dropped could still be among the `n_best`, torch decodes the sentence.
- *Forbidden symbols.* It can forbid padding, unknown and start, but then gives their probability
  to the others, so that scores change. Instead they end a target, as the end symbol does. A trained
  model hardly ever writes one; if it does, torch decodes the sentence.
- *Empty targets.* For the same reason the end symbol is not forbidden at the first step. An empty
  target takes no place from others in a beam: it is dropped here. A greedy one goes to torch.
- *Length.* It knows one maximum for all sentences of a call. Targets that pass the sentence's own
  maximum are dropped; if fewer than `n_best` finished ones are left, torch decodes the sentence.
- *Forced prefixes* count nothing in its scores, and the seed of its *sampling* is the whole
  process's: both are torch's work.

What remains are ties and rounding: sums are in another order, so that two candidates whose
log-probabilities differ by about 1e-6 may change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from glassformer.config import EXTRA_LENGTH
from glassformer.decoding.beam import penalty
from glassformer.decoding.engine import Engine, Future, Job, SearchOptions
from glassformer.decoding.protocols import Hypothesis, Vocabulary
from glassformer.interchange.ctranslate2.threads import Workers

__all__ = ["CTranslate2Engine"]

_BATCH_TOKENS = 512  # of sources, with padding: enough to fill a core, little enough to share out
_ROOM = 2  # times `beam` targets are finished before a search stops
_NOTHING = Hypothesis((), 0.0, 0.0, finished=True)  # the target of a blank source


@dataclass(frozen=True)
class CTranslate2Engine:
    """Workers that translate job after job, while the caller goes on.

    `source_names` and `target_names`: what the workers' model calls the ids, of which `special` are
    the target's special ones. `torch` decodes what CTranslate2 would decode otherwise than we do.
    `extra_length`: what a target may have more than its source, in tokens.
    """

    workers: Workers
    source_names: Sequence[str]
    target_names: Sequence[str]
    special: Vocabulary
    torch: Engine
    extra_length: int = EXTRA_LENGTH
    at_once: int = 1024  # it sorts them by tokens, so that batches are full and little is padding

    def submit(self, job: Job, options: SearchOptions) -> Future[list[list[Hypothesis]]]:
        """Queues the job; waits if the queue is full. Prefixes and sampling are torch's work."""
        if options.sampling is not None or any(job.prefixes):
            return self.torch.submit(job, options)
        results = self._ask(job, options)
        return Future(results, partial(self._answer, job, results, options))

    def _ask(self, job: Job, options: SearchOptions) -> list[Any]:
        """CTranslate2's future of each source that is not blank."""
        sources = [source for source in job.sources if source]
        if not sources:
            return []
        alone = len(sources) == 1 and not self.workers.busy
        translator = self.workers.alone if alone else self.workers.many
        results: list[Any] = translator.translate_batch(
            [[self.source_names[index] for index in source] for source in sources],
            asynchronous=True,
            max_batch_size=_BATCH_TOKENS,
            batch_type="tokens",
            beam_size=options.beam,
            patience=_ROOM,
            num_hypotheses=_kept(options),
            length_penalty=0,
            end_token=self._ends,
            return_end_token=True,
            return_scores=True,
            max_input_length=0,  # none is cut
            min_decoding_length=0,
            max_decoding_length=max(map(len, sources)) + self.extra_length,
        )
        return results

    @cached_property
    def _ends(self) -> list[str]:
        """The end symbol, and what may not be in a target."""
        return [self.target_names[i] for i in (self.special.eos_id, *self.special.never_produced)]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.target_names)}

    def _answer(
        self, job: Job, results: Sequence[Any], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """Wait for a job; torch decodes the sentences that CTranslate2 would answer otherwise."""
        sources, remaining = job.sources, iter(results)
        answers = [
            self._ranked(next(remaining).result(), len(source), options) if source else [_NOTHING]
            for source in sources
        ]
        left = [place for place, answer in enumerate(answers) if not answer]
        if left:
            remainder = Job([sources[place] for place in left])
            decoded = self.torch.submit(remainder, options).result()
            for place, answer in zip(left, decoded, strict=True):
                answers[place] = answer
        return answers

    def _ranked(self, result: Any, length: int, options: SearchOptions) -> list[Hypothesis]:
        """The answer that our search gives for a source of this length; [] if this does not tell.

        Finished targets come best first, then those that were cut at the maximum length.
        """
        end, *forbidden = self._ends
        most = length + self.extra_length
        if any(names[-1] in forbidden for names in result.hypotheses):
            return []
        answer = []
        for names, total in zip(result.hypotheses, result.scores, strict=True):
            finished = names[-1] == end
            ids = tuple(map(self._ids.__getitem__, names[:-1] if finished else names))
            score = total / penalty(len(names), options.length_penalty)  # |Y| counts the end symbol
            if ids and len(names) <= most:
                answer.append(Hypothesis(ids, score, total, finished))
        answer.sort(key=lambda target: (not target.finished, -target.score))
        answer = answer[: options.n_best]
        longest = max(map(len, result.hypotheses))
        if longest > most and not (len(answer) == options.n_best and answer[-1].finished):
            return []
        # A dropped target is less probable than all of these: this is the most its score can be.
        dropped = min(result.scores) / penalty(min(longest, most), options.length_penalty)
        full = 1 < len(result.hypotheses) == _kept(options)
        return [] if full and (not answer or dropped > answer[-1].score) else answer


def _kept(options: SearchOptions) -> int:
    """How many targets of each source CTranslate2 returns."""
    return 1 if options.beam == 1 else _ROOM * options.beam
