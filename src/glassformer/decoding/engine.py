"""The engine that runs a model, from source ids to hypotheses.

An engine has one method: `decode` takes a job and returns the job's hypotheses. Torch runs in
`TorchEngine`; the package `interchange` has the engine of CTranslate2.
"""

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

import torch

from glassformer.config import (
    BEAM,
    LENGTH_PENALTY,
    MOST_BEAM,
    MOST_MIN_LENGTH,
    MOST_NO_REPEAT_NGRAM,
    MOST_REPETITION_PENALTY,
)
from glassformer.decoding.batched import DecodingSettings, Search, SequenceModel, decode_sentences
from glassformer.decoding.beam import beam_search, check_search, penalty
from glassformer.decoding.constraints import BestTokens, ForcedPrefix, OutputRules, best_tokens
from glassformer.decoding.greedy import greedy
from glassformer.decoding.logits_processors import (
    LogitsProcessor,
    MinLength,
    NoRepeatNgram,
    RepetitionPenalty,
)
from glassformer.decoding.protocols import Hypothesis, S, StepFunction
from glassformer.decoding.sampling import Sampling, sample
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.support.devices import free_memory
from glassformer.support.errors import UsageError

__all__ = [
    "Engine",
    "Job",
    "Sampling",
    "SearchOptions",
    "SearchParts",
    "TorchEngine",
]

# The most tokens of a batch: enough for large products, few enough for the processor's cache. Beam
# search follows several targets of each sentence.
_GREEDY_TOKENS, _BEAM_TOKENS = 24_576, 8192
# A GPU has no such cache: a batch fills a share of its memory. A step copies the decoder's cache.
_CACHE_SHARE, _COPIES = 0.25, 2


@dataclass(frozen=True)
class SearchOptions:
    """The settings of a search; a number out of its range raises `ValueError`.

    `beam` 1 is greedy search. `n_best` - 1 is the greatest number of alternatives. `sampling` draws
    instead of searching. If the target already holds a token, `repetition_penalty` above 1 makes
    the token less probable. No run of `no_repeat_ngram` tokens occurs twice in a target.
    `min_length` is the least number of a target's tokens.

    `repetition_penalty` 1, `no_repeat_ngram` 0 and `min_length` 0 change nothing.

    >>> SearchOptions(beam=2, n_best=3)
    Traceback (most recent call last):
    ValueError: n_best must be from 1 to the beam of 2, not 3
    """

    beam: int = BEAM
    n_best: int = 1
    length_penalty: float = LENGTH_PENALTY
    sampling: Sampling | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram: int = 0
    min_length: int = 0

    def __post_init__(self) -> None:
        if self.sampling is None:
            check_search(self.beam, self.n_best, self.length_penalty)
        if self.beam > MOST_BEAM:
            raise ValueError(f"beam must be from 1 to {MOST_BEAM}, not {self.beam}")
        for name, least, most in (
            ("repetition_penalty", 1, MOST_REPETITION_PENALTY),
            ("no_repeat_ngram", 0, MOST_NO_REPEAT_NGRAM),
            ("min_length", 0, MOST_MIN_LENGTH),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} must be from {least} to {most:g}, not {value}")

    def processors(self, vocabulary: Vocabulary) -> list[LogitsProcessor]:
        """The logits processors that the settings need, in CTranslate2's order."""
        processors: list[LogitsProcessor] = []
        if self.repetition_penalty != 1:
            processors.append(RepetitionPenalty(self.repetition_penalty))
        if self.no_repeat_ngram:
            processors.append(NoRepeatNgram(self.no_repeat_ngram))
        if self.min_length:
            processors.append(MinLength(self.min_length, vocabulary))
        return processors


@dataclass(frozen=True)
class Job:
    """Sources without start and end symbol, and the prefix of ids that must begin each target.

    If `prefixes` is empty, no target has a prefix.
    """

    sources: Sequence[Sequence[int]]
    prefixes: Sequence[Sequence[int]] = ()


@runtime_checkable
class Engine(Protocol):
    """The attributes and the methods that every engine has."""

    name: ClassVar[str]
    """The name by which a person chooses the engine."""

    @property
    def at_once(self) -> int:
        """The number of sources that suits a job best."""

    @property
    def threads(self) -> int:
        """The number of threads that suits the engine best, each with a job of its own."""

    def decode(self, job: Job, options: SearchOptions, /) -> list[list[Hypothesis]]:
        """At most `n_best` hypotheses of each source, best first."""

    def with_target(self, target: Vocabulary, /) -> "Engine":
        """The engine that begins targets with another prefix, such as another language."""


@dataclass(frozen=True, kw_only=True)
class SearchParts:
    """The forms of the searches, by default plain; ``glassformer.parts.Parts`` adds other forms.

    ``parallel`` decodes several batches at once, one on each core of a CPU.
    """

    greedy: Search = greedy
    beam_search: Search = beam_search
    best_tokens: BestTokens = best_tokens
    parallel: bool = False


@dataclass(frozen=True)
class TorchEngine:
    """The searches of this package on a model; `decode` completes the `settings` for each job."""

    name: ClassVar = "torch"
    model: SequenceModel
    parts: SearchParts
    target: Vocabulary
    settings: DecodingSettings
    at_once: int = sys.maxsize  # the more sources, the better they are sorted
    threads: int = 1  # it has threads of its own

    def decode(self, job: Job, options: SearchOptions) -> list[list[Hypothesis]]:
        """The hypotheses of each source."""
        shared = self.parts.parallel and options.sampling is None  # draws keep their order
        return decode_sentences(
            self.model,
            job.sources,
            search=self._search(options),
            rules=partial(
                OutputRules,
                vocabulary=self.target,
                processors=options.processors(self.target),
                best_tokens=self.parts.best_tokens,
            ),
            constraints=[ForcedPrefix(job.prefixes, self.target)] if job.prefixes else [],
            settings=replace(
                self.settings,
                min_length=options.min_length,
                max_tokens=self._batch_tokens(options.beam),
                cores=torch.get_num_threads() if shared else 1,
            ),
        )

    def with_target(self, target: Vocabulary) -> "TorchEngine":
        """The engine of other targets; both share one model."""
        return replace(self, target=target)

    def _batch_tokens(self, beam: int) -> int:
        """The most tokens of a batch, by a CPU's cache or by a GPU's memory."""
        usual = _GREEDY_TOKENS if beam == 1 else _BEAM_TOKENS
        if not (each := _COPIES * self.settings.cache_bytes * beam):
            return usual
        return max(usual, int(_CACHE_SHARE * free_memory(self.settings.device) / each))

    def _search(self, options: SearchOptions) -> Search:
        alpha, n_best = options.length_penalty, options.n_best
        if options.sampling is not None:
            # One generator serves all batches, so that each batch draws other numbers.
            seeded = torch.Generator(self.settings.device).manual_seed(
                options.sampling.seed % 2**64
            )
            return partial(sample, sampling=options.sampling, n_best=n_best, generator=seeded)
        if options.beam == 1:
            return partial(_scored, self.parts.greedy, length_penalty=alpha)
        if n_best > 1 and "n_best" not in inspect.signature(self.parts.beam_search).parameters:
            raise UsageError(f"n_best {n_best}: the own beam search has no n_best: leave it out")
        return partial(
            self.parts.beam_search, beam=options.beam, n_best=n_best, length_penalty=alpha
        )


def _scored(
    greedy: Search,
    step: StepFunction[S],
    state: S,
    rules: OutputRules,
    *,
    length_penalty: float,
) -> list[list[Hypothesis]]:
    """Greedy search with the scores of beam search, so that scores of any two beams compare."""
    return [
        [
            replace(target, score=target.log_probability / penalty(length, length_penalty))
            for target in hypotheses
            for length in [len(target.tokens) + target.finished]
        ]
        for hypotheses in greedy(step, state, rules)
    ]
