"""What a hypothesis may hold: rules on the log-probabilities of the next token.

A constraint is a function of what a row holds so far. It sets to -inf what may not come next and
leaves the rest as it is, so that a hypothesis's log-probability stays the model's own. Several are
applied one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.decoding.fast.top_k import likeliest
from glassformer.decoding.protocols import DEFAULT_IDS, Vocabulary, log_softmax

__all__ = ["Constraint", "Forbidden", "ForcedPrefix", "Rules", "ordinary_ids"]


@runtime_checkable
class Constraint(Protocol):
    """A rule for each sentence of a batch."""

    def __call__(self, log_probabilities: Tensor, tokens: Tensor, sentences: Tensor, /) -> Tensor:
        """The log-probabilities (rows, vocab), with -inf where a token may not come next.

        `tokens` (rows, length) is what each row holds so far without the start symbol, `sentences`
        (rows,) the sentence of the batch that it belongs to. The tensor may be changed in place.
        """
        ...

    def select(self, sentences: Sequence[int], /) -> Constraint:
        """The same rule for these sentences only, in this order."""
        ...

    def needed(self, sentence: int, /) -> int:
        """How many tokens the rule asks of a sentence: room that its maximum length must have."""
        ...


def ordinary_ids(ids: Sequence[int], vocabulary: Vocabulary, what: str) -> None:
    """Raise `ValueError` where `what` holds a special or negative id.

    >>> ordinary_ids([4, 3], DEFAULT_IDS, "the prefix")
    Traceback (most recent call last):
    ...
    ValueError: the prefix holds the id 3, which is special or negative: give ordinary pieces' ids
    """
    special = {*vocabulary.never_produced, vocabulary.eos_id}
    for token in ids:
        if token in special or token < 0:
            raise ValueError(
                f"{what} holds the id {token}, which is special or negative: "
                "give ordinary pieces' ids"
            )


@dataclass(frozen=True)
class Forbidden:
    """Ids that no sentence may hold.

    >>> Forbidden([1])(torch.zeros(1, 3), torch.zeros(1, 0).long(), torch.tensor([0])).tolist()
    [[0.0, -inf, 0.0]]
    """

    ids: Sequence[int]

    def __call__(
        self,
        log_probabilities: Float[Tensor, "rows vocab"],
        _tokens: Int64[Tensor, "rows length"],
        _sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """-inf in the forbidden columns."""
        log_probabilities[:, list(self.ids)] = -torch.inf
        return log_probabilities

    def select(self, _sentences: Sequence[int]) -> Forbidden:
        """Itself: the rule is the same for every sentence."""
        return self

    def needed(self, _sentence: int) -> int:
        """Nothing."""
        return 0


@dataclass(frozen=True)
class ForcedPrefix:
    """How each sentence's target must begin; an empty prefix asks nothing.

    The search is free only after the prefix. The hypothesis holds the prefix, and its
    log-probability counts it. Raises `ValueError` for a prefix with a special id.

    >>> forced = ForcedPrefix([[5, 4], []])
    >>> rows, first = torch.tensor([0, 1]), torch.zeros(2, 0).long()
    >>> forced(torch.zeros(2, 6), first, rows).tolist()
    [[-inf, -inf, -inf, -inf, -inf, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """

    prefixes: Sequence[Sequence[int]]
    vocabulary: Vocabulary = DEFAULT_IDS

    def __post_init__(self) -> None:
        for sentence, prefix in enumerate(self.prefixes):
            ordinary_ids(prefix, self.vocabulary, f"the prefix of sentence {sentence}")

    def __call__(
        self,
        log_probabilities: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """-inf everywhere but at the prefix's next token, in the rows that are still in theirs."""
        place = tokens.shape[1]
        if all(len(prefix) <= place for prefix in self.prefixes):
            return log_probabilities
        following = [prefix[place] if place < len(prefix) else -1 for prefix in self.prefixes]
        if max(following) >= log_probabilities.shape[1]:
            raise ValueError(
                f"a prefix holds the id {max(following)}, but the step function's vocabulary has "
                f"{log_probabilities.shape[1]} ids"
            )
        forced = torch.tensor(following, device=sentences.device)[sentences].unsqueeze(1)
        ids = torch.arange(log_probabilities.shape[1], device=sentences.device)
        return log_probabilities.masked_fill((forced >= 0) & (ids != forced), -torch.inf)

    def select(self, sentences: Sequence[int]) -> ForcedPrefix:
        """The prefixes of these sentences."""
        return ForcedPrefix([self.prefixes[i] for i in sentences], self.vocabulary)

    def needed(self, sentence: int) -> int:
        """The prefix's length."""
        return len(self.prefixes[sentence])


@dataclass(frozen=True)
class Rules:
    """All that may be produced: for how long, from which ids, under which constraints.

    No target is empty: the end symbol may not come at the first step. `max_lengths` (batch,) counts
    the steps of each sentence, so the end symbol too; every tensor of a search lies on its device.
    Raises `ValueError` if a length is below 1.
    """

    max_lengths: Tensor
    vocabulary: Vocabulary = DEFAULT_IDS
    constraints: Sequence[Constraint] = ()

    def __post_init__(self) -> None:
        lengths = self.max_lengths
        if lengths.dim() != 1 or lengths.dtype != torch.int64:
            raise ValueError(
                "max_lengths must be an int64 tensor of one length a sentence, not "
                f"{lengths.dtype} of shape {tuple(lengths.shape)}"
            )
        if (lengths < 1).any():
            raise ValueError(f"every maximum length must be at least 1, not {int(lengths.min())}")

    def sentences(self) -> Int64[Tensor, " batch"]:
        """The numbers of the sentences, 0 to batch - 1."""
        return torch.arange(len(self.max_lengths), device=self.max_lengths.device)

    def start(self, rows: int) -> Int64[Tensor, " rows"]:
        """What the first step feeds: the start symbol in every row."""
        return torch.full((rows,), self.vocabulary.bos_id, device=self.max_lengths.device)

    def best(
        self,
        logits: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        sentences: Int64[Tensor, " rows"],
        *,
        count: int,
    ) -> tuple[Float[Tensor, "rows count"], Int64[Tensor, "rows count"]]:
        """The `count` most probable next tokens that may come: log-probabilities and ids."""
        if self.constraints:
            allowed = self.log_probabilities(logits, tokens, sentences)
            best = allowed.topk(min(count, allowed.shape[1]), dim=1)
            return best.values, best.indices
        self._check(logits, len(tokens))
        return likeliest(logits, count, never=self._never(tokens.shape[1]))

    def log_probabilities(
        self,
        logits: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """The model's log-probabilities of the next token, -inf for what may not come."""
        self._check(logits, len(tokens))
        allowed = log_softmax(logits)
        for constraint in (Forbidden(self._never(tokens.shape[1])), *self.constraints):
            allowed = constraint(allowed, tokens, sentences)
        return allowed

    def _never(self, length: int) -> tuple[int, ...]:
        """The ids that no target of this length may go on with."""
        never = self.vocabulary.never_produced
        return never if length else (*never, self.vocabulary.eos_id)

    def _check(self, logits: Tensor, rows: int) -> None:
        if logits.dim() != 2 or len(logits) != rows:
            raise ValueError(
                f"the step function must give logits of shape (rows, vocab) with {rows} "
                f"rows, not {tuple(logits.shape)}"
            )
