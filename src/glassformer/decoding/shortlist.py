"""A shortlist of the vocabulary: at decoding, only the tokens that a batch's sources make likely.

The projection to logits, the softmax and the choice of the best cost as much as the vocabulary has
tokens. Few of them can ever stand in the translation of given sentences: the most frequent ones,
and for each source token those that it is often translated by (Jean et al. 2015, arXiv 1412.2007).
The search then runs on the columns of these *candidates* alone, and what it finds is renamed to
ids of the whole vocabulary. Probabilities are shared out among the candidates only, so they come
out a little higher; a shortlist of the whole vocabulary changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor
from torch.nn import functional as F

from glassformer.decoding.batched import Preparable, Search
from glassformer.decoding.constraints import Constraint
from glassformer.decoding.protocols import (
    DEFAULT_IDS,
    Hypothesis,
    StepFunction,
    Vocabulary,
    select_beams,
)
from glassformer.errors import InputError

__all__ = ["ProjectingModel", "ShortState", "Shortlist", "Shortlisted"]


@dataclass(frozen=True)
class Shortlist:
    """The likely target ids of each source id, -1 where there are fewer, and the frequent ones.

    >>> likely = torch.tensor([[-1, -1], [7, 5], [5, -1]])
    >>> Shortlist(likely, torch.tensor([4])).candidates(torch.tensor([[1, 2]]), first=[3]).tolist()
    [3, 4, 5, 7]
    """

    likely: Int[Tensor, "source_vocab choices"]
    frequent: Int[Tensor, " frequent"]

    @classmethod
    def of(
        cls, tensors: Mapping[str, Tensor], *, source_vocab_size: int, target_vocab_size: int
    ) -> Shortlist:
        """The shortlist that a bundle holds; :class:`InputError` where it is not this model's."""
        try:
            likely, frequent = tensors["likely"].long(), tensors["frequent"].long()
        except KeyError as error:
            raise InputError(f"shortlist.safetensors holds no {error}") from error
        ids = torch.cat([likely.flatten(), frequent.flatten()])
        if likely.dim() != 2 or len(likely) != source_vocab_size or frequent.dim() != 1:
            raise InputError(
                f"shortlist.safetensors is for {len(likely):,} source tokens, and this model has"
                f" {source_vocab_size:,}"
            )
        if len(ids) and not -1 <= int(ids.min()) <= int(ids.max()) < target_vocab_size:
            raise InputError(
                f"shortlist.safetensors names token {int(ids.max()):,}, and this model has"
                f" {target_vocab_size:,} target tokens"
            )
        return cls(likely, frequent)

    def candidates(
        self, source: Int[Tensor, "batch src_len"], *, first: Sequence[int]
    ) -> Int64[Tensor, " candidates"]:
        """The target ids that this batch may use, each once: those of ``first``, then by number."""
        device = self.likely.device
        likely = self.likely[source.to(device).unique()].flatten()
        found = torch.cat([likely, self.frequent]).unique()
        begin = torch.tensor(first, device=device)
        others = found[(found >= 0) & ~torch.isin(found, begin)]
        return torch.cat([begin, others]).to(source.device)


@runtime_checkable
class ProjectingModel(Protocol):
    """A model whose last step, from a decoder's state to logits, can be done for some rows only."""

    @property
    def output_weight(self) -> Tensor:
        """The matrix of the projection (vocab, d_model)."""
        ...

    output_bias: Any  # a Tensor (vocab,), or None

    def encode(self, source: Tensor, /) -> Any:
        """See :class:`sentences.SequenceModel`."""
        ...

    def start(self, memory: Any, /) -> Any:
        """See :class:`sentences.SequenceModel`."""
        ...

    def advance(self, tokens: Tensor, state: Any, /) -> tuple[Tensor, Any]:
        """The decoder's states (rows, d_model), before the projection, and the next state."""
        ...


@dataclass(frozen=True)
class ShortState:
    """The model's own state, and the candidates of the batch with their part of the projection."""

    decoder: Any
    candidates: Int64[Tensor, " candidates"]
    weight: Float[Tensor, "candidates d_model"]
    bias: Float[Tensor, " candidates"] | None

    def select(self, rows: Tensor) -> ShortState:
        return replace(self, decoder=self.decoder.select(rows))

    def select_beams(self, rows: Tensor) -> ShortState:
        return replace(self, decoder=select_beams(self.decoder, rows))


@dataclass(frozen=True)
class Shortlisted:
    """``model`` among a shortlist's candidates: what ``decode_sentences`` takes for a model.

    The search has to be told, for its tokens are the numbers of candidates::

        short = Shortlisted(model, shortlist, vocabulary)
        decode_sentences(short, sources, search=short.among(search))

    ``vocabulary`` are the special ids of the target side.
    """

    model: ProjectingModel
    shortlist: Shortlist
    vocabulary: Vocabulary = DEFAULT_IDS

    def for_decoding(self, weights: str = "as they are") -> Shortlisted:
        """The same on the model's faster form, if it has one."""
        if not isinstance(self.model, Preparable):
            return self
        fast: Any = self.model.for_decoding(weights)
        return replace(self, model=fast)

    def encode(self, source: Int[Tensor, "batch src_len"]) -> tuple[Any, Tensor]:
        return self.model.encode(source), self.shortlist.candidates(source, first=self._special)

    def start(self, memory: tuple[Any, Tensor]) -> ShortState:
        encoded, candidates = memory
        bias = self.model.output_bias
        return ShortState(
            self.model.start(encoded),
            candidates,
            self.model.output_weight[candidates],
            None if bias is None else bias[candidates],
        )

    def step(
        self, tokens: Int64[Tensor, " rows"], state: ShortState
    ) -> tuple[Float[Tensor, "rows candidates"], ShortState]:
        states, following = self.model.advance(state.candidates[tokens], state.decoder)
        return F.linear(states, state.weight, state.bias), replace(state, decoder=following)

    def among(self, search: Search) -> Search:
        """``search`` among candidates, its answer in ids of the whole vocabulary.

        Raises ``ValueError`` for constraints, whose ids need not be candidates.
        """
        number, ids = self._special.index, self.vocabulary
        numbers = Vocabulary(
            number(ids.pad_id), number(ids.unk_id), number(ids.bos_id), number(ids.eos_id)
        )
        numbered: Any = search  # each has this option; what decode_sentences calls does not say so
        return partial(_renamed, partial(numbered, vocabulary=numbers))

    @property
    def _special(self) -> list[int]:
        """The special ids, each once: they are the first candidates of every batch."""
        ids = self.vocabulary
        return list(dict.fromkeys([ids.pad_id, ids.unk_id, ids.bos_id, ids.eos_id]))


def _renamed(
    search: Search,
    step: StepFunction[ShortState],
    state: ShortState,
    /,
    *,
    max_lengths: Tensor,
    constraints: Sequence[Constraint],
) -> list[list[Hypothesis]]:
    if constraints:
        raise ValueError("constraints and a shortlist do not go together")
    ids = state.candidates.tolist()
    answers = search(step, state, max_lengths=max_lengths, constraints=())
    return [
        [replace(one, tokens=tuple(ids[number] for number in one.tokens)) for one in answer]
        for answer in answers
    ]
