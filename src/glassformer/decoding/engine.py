"""What runs a model: ids in, hypotheses out.

An engine has one method. It takes the jobs one by one, as they come, and gives their answers in the
same order, so that a file of any size goes through it; it may read some jobs ahead of the answer.
Torch's is `TorchEngine`; CTranslate2's is in `interchange`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch

from glassformer.config import BEAM, EXTRA_LENGTH, LENGTH_PENALTY, MOST_BEAM
from glassformer.decoding.batched import Search, SequenceModel, decode_sentences
from glassformer.decoding.beam import beam_search, check_search, penalty
from glassformer.decoding.constraints import ForcedPrefix
from glassformer.decoding.greedy import greedy
from glassformer.decoding.protocols import Hypothesis, StepFunction, Vocabulary
from glassformer.decoding.sampling import sample

__all__ = ["Engine", "Job", "Sampling", "SearchOptions", "TorchEngine"]

# What a batch may hold: enough that the products are large, little enough that what they read stays
# near the processor. Beam search follows several targets of each sentence.
_GREEDY_TOKENS, _BEAM_TOKENS = 24_576, 8192


@dataclass(frozen=True)
class Sampling:
    """Draw translations instead of searching for the best; the seed makes it repeatable."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class SearchOptions:
    """What is searched for; `ValueError` for a number out of its range.

    >>> SearchOptions(beam=2, n_best=3)
    Traceback (most recent call last):
    ValueError: n_best must be from 1 to the beam of 2, not 3
    """

    beam: int = BEAM
    n_best: int = 1
    length_penalty: float = LENGTH_PENALTY
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        if self.sampling is None:
            check_search(self.beam, self.n_best, self.length_penalty)
        if self.beam > MOST_BEAM:
            raise ValueError(f"beam must be from 1 to {MOST_BEAM}, not {self.beam}")


@dataclass(frozen=True)
class Job:
    """Sources without start and end symbol, and for each the ids that its target must begin with.

    No prefixes at all stands for none for each. A job without sources asks for nothing but the
    answers to those before it, at once: whoever gives it has nothing to do until they come.
    """

    sources: Sequence[Sequence[int]]
    prefixes: Sequence[Sequence[int]] = ()


@runtime_checkable
class Engine(Protocol):
    """What a translator needs of an engine."""

    @property
    def at_once(self) -> int:
        """How many sources it likes best in a job."""
        ...

    def decode(
        self, jobs: Iterable[Job], options: SearchOptions, /
    ) -> Iterator[list[list[Hypothesis]]]:
        """For each job the hypotheses of each of its sources, best first, at most `n_best`."""
        ...


@dataclass(frozen=True)
class TorchEngine:
    """The searches of this package on a model of this program.

    `extra_length`: what a target may have more than its source, in tokens (section 6.1).
    `decoder`: returns the model, or a faster form of it, for the next job. Plain decoding, by the
    model itself, takes the plain top-k and one core: hooks on a model have their order.
    """

    model: SequenceModel
    decoder: Callable[[], SequenceModel]
    source: Vocabulary
    target: Vocabulary
    device: torch.device
    extra_length: int = EXTRA_LENGTH
    at_once: int = sys.maxsize  # the more it knows, the better it can sort

    def decode(
        self, jobs: Iterable[Job], options: SearchOptions
    ) -> Iterator[list[list[Hypothesis]]]:
        """One job after the other."""
        search = self._search(options)
        for job in jobs:
            decoder = self.decoder()
            plain = decoder is self.model
            prefixes = job.prefixes or [()] * len(job.sources)
            # With any constraint, searches take the plain top-k.
            forced = [ForcedPrefix(prefixes, self.target)] if job.prefixes or plain else []
            shared = not plain and options.sampling is None  # draws have their order too
            yield decode_sentences(
                decoder,
                job.sources,
                search=search,
                constraints=forced,
                max_tokens=_GREEDY_TOKENS if options.beam == 1 else _BEAM_TOKENS,
                extra_length=self.extra_length,
                device=self.device,
                vocabulary=self.source,
                cores=torch.get_num_threads() if shared else 1,
            )

    def _search(self, options: SearchOptions) -> Search:
        common: dict[str, Any] = {"vocabulary": self.target}
        if options.sampling is not None:
            how = options.sampling
            return partial(
                sample,
                temperature=how.temperature,
                top_k=how.top_k,
                top_p=how.top_p,
                n_best=options.n_best,
                generator=torch.Generator(self.device).manual_seed(how.seed % 2**64),
                **common,
            )
        common["length_penalty"] = options.length_penalty
        if options.beam == 1:
            return partial(_greedy, **common)
        return partial(beam_search, beam=options.beam, n_best=options.n_best, **common)


def _greedy(
    step: StepFunction[Any], state: Any, *, length_penalty: float, **settings: Any
) -> list[list[Hypothesis]]:
    """Greedy search, scored as beam search scores, so that a beam of 1 compares with one of 5."""
    return [
        [
            replace(one, score=one.log_probability / penalty(length, length_penalty))
            for one in found
            for length in [len(one.tokens) + one.finished]
        ]
        for found in greedy(step, state, **settings)
    ]
