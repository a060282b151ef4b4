"""Decodes many sentences with a model, in padded batches of similar length."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from glassformer.config import EXTRA_LENGTH
from glassformer.decoding.constraints import Constraint, OutputRules
from glassformer.decoding.protocols import Hypothesis, State, StepFunction
from glassformer.decoding.vocabulary import DEFAULT_IDS, Vocabulary
from glassformer.support.progress import working
from glassformer.support.threads import torch_pool

__all__ = ["DecodingSettings", "Search", "SequenceModel", "decode_sentences"]

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S", bound=State)

_FEW = 10  # tokens: `max_length_ratio` never cuts off a short target
_MIN_SHARE = 32  # sentences of a core: a smaller batch takes nearly as long


@runtime_checkable
class SequenceModel(Protocol):
    """A model that reads a source once, and then writes its target token by token."""

    def encode(self, source: Tensor, /) -> Any:
        """The memory of sources (batch, src_len), which are ids, the end symbol, then padding."""

    def start(self, memory: Any, /) -> Any:
        """The state before the first step, one row for each sentence."""

    def step(self, tokens: Tensor, state: Any, /) -> tuple[Tensor, Any]:
        """Read `tokens`; return the logits of the next tokens and the next state."""


Search: TypeAlias = Callable[..., list[list[Hypothesis]]]
"""`greedy`, `beam_search` or `sample`: `search(step, state, rules)` returns the hypotheses of each
sentence of a batch. `functools.partial` sets the other parameters."""


@dataclass(frozen=True)
class DecodingSettings:
    """The greatest lengths of targets, and the settings of batches.

    - `extra_length` is the number of tokens by which a target may exceed its source (section 6.1).
    - `max_length_ratio` is the greatest number of target tokens for each source token, and a target
      may have 10 more.
    - `min_length` is a length that every target may have, however short its source is.
    - `max_tokens` is the greatest size of a batch in tokens. A batch takes its number of sentences
      times (longest source + longest target). A longer sentence gets a batch of its own.
    - `cache_bytes` is the size of a target token in the decoder's cache; 0 if nobody knows it.
    - `cores` is the number of batches that a CPU decodes at once, each on one core. The products
      of one step are too small for several cores. Sampling, and a model with hooks, need 1.
    - `device` is the device of the model.
    - `vocabulary` has the special ids of sources; the search has the special ids of targets.
    """

    extra_length: int = EXTRA_LENGTH
    max_length_ratio: float = math.inf
    min_length: int = 0
    max_tokens: int = 8192
    cache_bytes: int = 0
    cores: int = 1
    device: torch.device = field(default=torch.device("cpu"))
    vocabulary: Vocabulary = DEFAULT_IDS

    def max_length(self, source: Sequence[int]) -> int:
        """The greatest number of a target's tokens, before constraints add tokens."""
        relative = self.max_length_ratio * max(1, len(source)) + _FEW
        return int(min(len(source) + self.extra_length, relative))


_DEFAULTS = DecodingSettings()


def decode_sentences(
    model: SequenceModel,
    sources: Sequence[Sequence[int]],
    *,
    search: Search,
    rules: Callable[..., OutputRules] = OutputRules,
    constraints: Sequence[Constraint] = (),
    settings: DecodingSettings = _DEFAULTS,
) -> list[list[Hypothesis]]:
    """The hypotheses of each source, in the order of the sources.

    A source has no start and end symbol. `settings` and the tokens that the constraints need limit
    the length of a target. An empty source gives one empty hypothesis, without the model. `search`
    is, for instance, `functools.partial(beam_search, beam=4, n_best=2)`. `rules` is, for instance,
    `functools.partial(OutputRules, vocabulary=ids)`. The function calls `rules` for each batch with
    the batch's maximum lengths and constraints.

    The function raises `ValueError` for a module in training mode, which would apply dropout.
    """
    if isinstance(model, nn.Module) and model.training:
        raise ValueError("the model is in training mode: call model.eval() before decoding")
    hypotheses = [[Hypothesis((), 0.0, 0.0, finished=True)] for _ in sources]
    max_lengths = [
        max(
            settings.min_length + 1,
            settings.max_length(source) + sum(constraint.needed(i) for constraint in constraints),
        )
        for i, source in enumerate(sources)
    ]
    stop = Event()

    @torch.inference_mode()
    def decoded(batch: list[int]) -> list[list[Hypothesis]]:
        source = _padded([sources[i] for i in batch], settings.vocabulary).to(settings.device)
        targets = search(
            _stoppable(model.step, stop),
            model.start(model.encode(source)),
            rules(
                torch.tensor([max_lengths[i] for i in batch], device=source.device),
                constraints=[constraint.select(batch) for constraint in constraints],
            ),
        )
        advance(len(batch))
        return targets

    cores = settings.cores if settings.device.type == "cpu" else 1
    share = max(_MIN_SHARE, -(-len(sources) // cores)) if cores > 1 else len(sources)
    batches = list(_batches(sources, max_lengths, settings.max_tokens, share))
    with working("translating", total=len(sources)) as advance:
        results = _in_parallel(decoded, batches, cores, stop)
    for batch, result in zip(batches, results, strict=True):
        for i, targets in zip(batch, result, strict=True):
            hypotheses[i] = targets
    return hypotheses


def _stoppable(step: StepFunction[S], stop: Event) -> StepFunction[S]:
    """A copy of `step` that raises InterruptedError after Ctrl+C or a failed batch sets `stop`."""

    def checked(tokens: Tensor, state: S) -> tuple[Tensor, S]:
        if stop.is_set():
            raise InterruptedError
        return step(tokens, state)

    return checked


def _in_parallel(work: Callable[[B], A], batches: Sequence[B], cores: int, stop: Event) -> list[A]:
    """The results of `work` on `cores` threads; the end, or a failed batch, sets `stop`."""
    if cores == 1 or len(batches) < 2:
        return list(map(work, batches))
    pool = torch_pool(min(cores, len(batches)))
    try:
        return list(pool.map(work, batches))
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _batches(
    sources: Sequence[Sequence[int]], max_lengths: Sequence[int], max_tokens: int, share: int
) -> Iterator[list[int]]:
    """Batches of at most `share` sources and `max_tokens` tokens, as indices; no empty source.

    Sources of similar length share a batch, so there is little padding. The longest sources come
    first, so that a lack of memory shows at once.
    """
    batch: list[int] = []
    src_len = tgt_len = 0
    for i in sorted(range(len(sources)), key=lambda i: -len(sources[i])):
        if not sources[i]:
            break  # the rest is empty
        src_len, tgt_len = max(src_len, len(sources[i]) + 1), max(tgt_len, max_lengths[i])
        full = len(batch) == share or (len(batch) + 1) * (src_len + tgt_len) > max_tokens
        if batch and full:
            yield batch
            batch, src_len, tgt_len = [], len(sources[i]) + 1, max_lengths[i]
        batch.append(i)
    if batch:
        yield batch


def _padded(
    sources: Sequence[Sequence[int]], vocabulary: Vocabulary
) -> Int64[Tensor, "batch src_len"]:
    """A tensor with a row for each source, which ends in the end symbol and then padding."""
    rows = [torch.tensor([*source, vocabulary.eos_id]) for source in sources]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=vocabulary.pad_id)
