"""Many sentences through a model: sorted by length, padded, batched, answered in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from glassformer.config import EXTRA_LENGTH
from glassformer.decoding.constraints import Constraint
from glassformer.decoding.protocols import DEFAULT_IDS, Hypothesis, State, StepFunction, Vocabulary
from glassformer.threads import pool_of_single_threads

__all__ = ["Search", "SequenceModel", "decode_sentences"]

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S", bound=State)

_WORTH_A_CORE = 32  # sentences: fewer in a batch take nearly as long as so many


@runtime_checkable
class SequenceModel(Protocol):
    """What can be decoded: a model that reads a source once and then writes token by token."""

    def encode(self, source: Tensor, /) -> Any:
        """The memory of sources (batch, src_len), each ended by its end symbol and padded."""
        ...

    def start(self, memory: Any, /) -> Any:
        """The state before the first step, one row for each sentence."""
        ...

    def step(self, tokens: Tensor, state: Any, /) -> tuple[Tensor, Any]:
        """The step function of the searches."""
        ...


@runtime_checkable
class Search(Protocol):
    """`greedy`, `beam_search` or `sample`, or a `functools.partial` of one with its parameters."""

    def __call__(
        self,
        step: StepFunction[Any],
        state: Any,
        /,
        *,
        max_lengths: Tensor,
        constraints: Sequence[Constraint],
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence of a batch."""
        ...


def decode_sentences(
    model: SequenceModel,
    sources: Sequence[Sequence[int]],
    *,
    search: Search,
    constraints: Sequence[Constraint] = (),
    max_tokens: int = 8192,
    extra_length: int = EXTRA_LENGTH,
    device: torch.device | str = "cpu",
    vocabulary: Vocabulary = DEFAULT_IDS,
    cores: int = 1,
) -> list[list[Hypothesis]]:
    """The hypotheses of each source, in the order of the sources.

    A source is a sequence of ids without start and end symbol. Its target has at most
    `extra_length` tokens more than it, as in section 6.1 of the paper; what the constraints ask for
    comes on top. An empty source gives one empty hypothesis and never meets the model.

    - `search`: for instance `functools.partial(beam_search, beam=4, n_best=2)`.
    - `constraints`: made for all the sources, in their order; each batch gets its part.
    - `max_tokens`: what a batch may hold, in tokens: sentences times the longest source and the
      longest target. A sentence that is longer by itself gets a batch of its own.
    - `device`: where the model is.
    - `vocabulary`: the special ids of the source side; those of the target side are the search's.
    - `cores`: on a CPU so many batches go side by side, one core each, because the products of one
      step are too small to share. A search that draws, or a model that is watched, must have one.

    Raises `ValueError` for a module in training mode, whose dropout would spoil the answer.
    """
    if isinstance(model, nn.Module) and model.training:
        raise ValueError("the model is in training mode: call model.eval() before decoding")
    _at_least_one(max_tokens=max_tokens, extra_length=extra_length, cores=cores)
    found = [[Hypothesis((), 0.0, 0.0, finished=True)] for _ in sources]
    rooms = [
        len(source) + extra_length + sum(rule.needed(i) for rule in constraints)
        for i, source in enumerate(sources)
    ]

    stop = Event()

    @torch.inference_mode()
    def answers(batch: list[int]) -> list[list[Hypothesis]]:
        source = _padded([sources[i] for i in batch], vocabulary).to(device)
        return search(
            _until(stop, model.step),
            model.start(model.encode(source)),
            max_lengths=torch.tensor([rooms[i] for i in batch], device=source.device),
            constraints=[rule.select(batch) for rule in constraints],
        )

    cores = cores if torch.device(device).type == "cpu" else 1
    share = max(_WORTH_A_CORE, -(-len(sources) // cores)) if cores > 1 else len(sources)
    batches = list(_batches(sources, rooms, max_tokens, share))
    for batch, answered in zip(batches, _side_by_side(answers, batches, cores, stop), strict=True):
        for i, answer in zip(batch, answered, strict=True):
            found[i] = answer
    return found


def _at_least_one(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")


def _until(stop: Event, step: StepFunction[S]) -> StepFunction[S]:
    """A step that is no longer done when nobody waits for it: another batch failed, or Ctrl+C."""

    def checked(tokens: Tensor, state: S) -> tuple[Tensor, S]:
        if stop.is_set():
            raise InterruptedError
        return step(tokens, state)

    return checked


def _side_by_side(work: Callable[[B], A], batches: Sequence[B], cores: int, stop: Event) -> list[A]:
    """The work of each batch, ``cores`` of them at a time; ``stop`` is set when it has ended."""
    if cores == 1 or len(batches) < 2:
        return list(map(work, batches))
    pool = pool_of_single_threads(min(cores, len(batches)))
    try:
        return list(pool.map(work, batches))
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _batches(
    sources: Sequence[Sequence[int]], rooms: Sequence[int], max_tokens: int, most: int
) -> Iterator[list[int]]:
    """The places of the sources that are not empty, the longest first, cut by the token budget, at
    most `most` together.

    Equal lengths share a batch, so little is padding. The longest come first so that a lack of
    memory shows at once.
    """
    batch: list[int] = []
    width = room = 0
    for i in sorted(range(len(sources)), key=lambda i: -len(sources[i])):
        if not sources[i]:
            break  # only empty ones are left
        width, room = max(width, len(sources[i]) + 1), max(room, rooms[i])
        full = len(batch) == most or (len(batch) + 1) * (width + room) > max_tokens
        if batch and full:
            yield batch
            batch, width, room = [], len(sources[i]) + 1, rooms[i]
        batch.append(i)
    if batch:
        yield batch


def _padded(
    sources: Sequence[Sequence[int]], vocabulary: Vocabulary
) -> Int64[Tensor, "batch src_len"]:
    """Each source with the end symbol behind it, and padding behind that."""
    rows = [torch.tensor([*source, vocabulary.eos_id]) for source in sources]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=vocabulary.pad_id)
