"""CTranslate2 as an engine, with the hypotheses of glassformer's own searches.

CTranslate2's beam search goes as `decoding/beam.py` does. Candidates that end among the first
`beam` are finished; the best `beam` unfinished candidates go on. The differences, and this engine's
answer to each:

- *Scores.* CTranslate2 ranks by `log P / |Y| ** alpha`, and so chooses the finished targets that it
  returns. This engine asks for plain log-probabilities of `beam` targets, and ranks them itself.
  If a dropped target could still be among the `n_best`, torch decodes the sentence.
- *Forbidden symbols.* CTranslate2 can forbid padding, unknown and start, but then gives their
  probability to other symbols, so that scores change. Here such a symbol ends a target. A trained
  model hardly ever writes such a symbol; if the model does, torch decodes the sentence.
- *Blank targets.* Nor does this engine forbid the end symbol at the first step. If a target is
  empty, or the most probable target reads as empty, torch decodes the sentence. The engine drops
  other targets that read as empty.
- *Length.* CTranslate2 has one maximum for all sentences of a call. This engine drops the targets
  above their sentence's own maximum. If fewer than `n_best` finished targets are left, torch
  decodes the sentence.
- *Forced prefixes* count nothing in CTranslate2's scores, and its *sampling* has one seed for the
  whole process. Torch decodes such jobs. A prefix of all targets, such as a language, counts
  nothing in `decoding/beam.py` either, and CTranslate2 gets such a prefix.

Ties and rounding remain: CTranslate2 sums in another order, so that two candidates whose
log-probabilities differ by about 1e-6 can change places.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

from glassformer.decoding.beam import penalty
from glassformer.decoding.engine import Engine, Job, SearchOptions
from glassformer.decoding.protocols import Hypothesis
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.support.errors import InputError
from glassformer.support.threads import torch_threads
from glassformer.tools.interchange.ctranslate2.workers import FAULTS, Workers

if TYPE_CHECKING:
    from ctranslate2 import TranslationResult

__all__ = ["CTranslate2Engine", "say_once"]

_BATCH_TOKENS = 1024  # source tokens with padding; fills a core, and leaves batches for other cores
_NOTHING = Hypothesis((), 0.0, 0.0, finished=True)  # the target of a blank source


@dataclass(frozen=True)
class CTranslate2Engine:
    """Workers that translate the jobs of several threads.

    `source_names` and `target_names` are the subwords of the ids, `special` the target's special
    ids. `torch` decodes the sentences for which CTranslate2's search differs. If CTranslate2 fails,
    and the engine is `optional`, `torch` decodes all sentences. `extra_length` is the number of
    tokens by which a target may exceed the source.
    """

    name: ClassVar = "ctranslate2"

    workers: Workers
    source_names: Sequence[str]
    target_names: Sequence[str]
    special: Vocabulary
    torch: Engine
    extra_length: int
    at_once: int = 1024  # sentences, which CTranslate2 sorts by length to have little padding
    threads: int = 2  # a second job is prepared while CTranslate2 works
    optional: bool = False
    _choosing: Lock = field(default_factory=Lock, repr=False, compare=False)

    def decode(self, job: Job, options: SearchOptions) -> list[list[Hypothesis]]:
        """The hypotheses of each source; torch decodes sentences on which the searches differ.

        Torch decodes all jobs with prefixes or sampling.
        """
        if options.sampling is not None or any(job.prefixes):
            return self.torch.decode(job, options)
        sources = job.sources
        places = [place for place, source in enumerate(sources) if source]
        answers = [[] if source else [_NOTHING] for source in sources]
        try:
            results = self._translated([sources[place] for place in places], options)
        except InputError as error:
            if not self.optional:
                raise
            say_once(str(error))
            return self.torch.decode(job, options)
        for place, result in zip(places, results, strict=True):
            answers[place] = self._ranked(result, len(sources[place]), options)
        unanswered = [place for place, answer in enumerate(answers) if not answer]
        if unanswered:
            again = Job([sources[place] for place in unanswered])
            with torch_threads(1):  # threads that wait awake would slow CTranslate2's down
                decoded = self.torch.decode(again, options)
            for place, answer in zip(unanswered, decoded, strict=True):
                answers[place] = answer
        return answers

    def with_target(self, target: Vocabulary) -> CTranslate2Engine:
        """The engine of other targets; both share their workers."""
        return replace(self, special=target, torch=self.torch.with_target(target))

    def _translated(
        self, sources: Sequence[Sequence[int]], options: SearchOptions
    ) -> list[TranslationResult]:
        """CTranslate2's answer to each source.

        Raises InputError if CTranslate2 fails, because CTranslate2 loads some damaged models.
        """
        if not sources:
            return []
        self.workers.check_process()
        with self._choosing:  # one thread makes a translator at its first use
            alone = len(sources) == 1 and not self.workers.busy
            translator = self.workers.alone if alone else self.workers.many
        begin = [self.target_names[index] for index in self.special.prefix_ids]
        try:
            results: list[TranslationResult] = translator.translate_batch(
                [[self.source_names[index] for index in source] for source in sources],
                target_prefix=[begin] * len(sources) if begin else None,
                max_batch_size=_BATCH_TOKENS,
                batch_type="tokens",
                beam_size=options.beam,
                num_hypotheses=options.beam,
                length_penalty=0,
                end_token=self._ends,
                return_end_token=True,
                return_scores=True,
                max_input_length=0,  # cut no input
                repetition_penalty=options.repetition_penalty,
                no_repeat_ngram_size=options.no_repeat_ngram,
                min_decoding_length=options.min_length,
                max_decoding_length=self._most(max(map(len, sources)), options),
            )
        except FAULTS as error:
            raise InputError(
                f"{self.workers.directory}: CTranslate2 cannot translate with this model ({error}):"
                " delete the directory, which the next load makes anew; or take engine torch"
            ) from error
        return results

    def _most(self, length: int, options: SearchOptions) -> int:
        """The maximum length of a target for a source of ``length`` subwords."""
        return max(length + self.extra_length, options.min_length + 1)

    @cached_property
    def _ends(self) -> list[str]:
        """The symbols at which CTranslate2 ends a target: first eos, then all forbidden symbols."""
        return [self.target_names[i] for i in (self.special.eos_id, *self.special.never_produced)]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.target_names)}

    @cached_property
    def _blanks(self) -> set[str]:
        return {self.target_names[index] for index in self.special.blank_ids}

    def _is_blank(self, names: Sequence[str]) -> bool:
        """Whether a target begins blank, which `decoding/beam.py` forbids."""
        end = self._ends[0]
        first, second, *_ = [*names[len(self.special.prefix_ids) :], end, end]
        return first == end or (first in self._blanks and second in {end, *self._blanks})

    def _ranked(
        self, result: TranslationResult, length: int, options: SearchOptions
    ) -> list[Hypothesis]:
        """The ranked hypotheses for a source of ``length`` subwords; [] if torch must decode it.

        Finished targets come first, then targets cut at the maximum length.
        """
        end, *forbidden = self._ends
        hypotheses, scores = result.hypotheses, result.scores  # each access makes new lists
        most = self._most(length, options)
        begun = len(self.special.prefix_ids)
        if any(names[-1] in forbidden or names[begun:] == [end] for names in hypotheses):
            return []
        blank = list(map(self._is_blank, hypotheses))
        if blank[0]:  # the most probable target
            return []
        answer = []
        for names, total, is_blank in zip(hypotheses, scores, blank, strict=True):
            finished = names[-1] == end
            ids = tuple(map(self._ids.__getitem__, names[:-1] if finished else names))
            score = total / penalty(len(names), options.length_penalty)  # |Y| counts the end symbol
            if len(names) <= most and not is_blank:
                answer.append(Hypothesis(ids, score, total, finished))
        answer.sort(key=lambda target: (not target.finished, -target.score))
        answer = answer[: options.n_best]
        certain = len(answer) == options.n_best and answer[-1].finished
        longest = max(map(len, hypotheses))
        dropped = 1 < len(hypotheses) == options.beam  # CTranslate2 may have dropped targets
        if (longest > most or dropped or any(blank)) and not certain:
            return []
        # The greatest possible score of a dropped target, which all kept targets exceed.
        best = min(scores) / penalty(min(longest, most), options.length_penalty)
        return [] if dropped and best > answer[-1].score else answer


@cache
def say_once(reason: str) -> None:
    """Print why torch translates in the place of CTranslate2."""
    print(f"glassformer: engine torch translates: {reason}", file=sys.stderr, flush=True)
