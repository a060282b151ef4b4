"""Constraints on a target: they change the log-probabilities of its next token.

A constraint reads the tokens of a row so far. It sets the log-probability of a token to -inf if the
token may not follow, and changes no other log-probability. So a hypothesis keeps the model's
log-probability. A search applies several constraints one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from glassformer.decoding.logits_processors import LogitsProcessor
from glassformer.decoding.vocabulary import DEFAULT_IDS, Vocabulary
from glassformer.support.errors import InputError

__all__ = [
    "BestTokens",
    "Constraint",
    "ForcedPrefix",
    "OutputRules",
    "best_tokens",
    "log_softmax",
]

BestTokens: TypeAlias = "Callable[[Tensor, int, Sequence[int]], tuple[Tensor, Tensor]]"
"""A function from `(logits, count, never)` to values and ids, such as :func:`best_tokens`."""


@runtime_checkable
class Constraint(Protocol):
    """A constraint for each sentence of a batch."""

    def __call__(self, log_probabilities: Tensor, tokens: Tensor, sentences: Tensor, /) -> Tensor:
        """The log-probabilities (rows, vocab), with -inf for each token that may not follow.

        `tokens` (rows, length) holds each row's tokens so far, without the start symbol.
        `sentences` (rows,) holds the index of the row's sentence in the batch. A constraint may
        change `log_probabilities` in place.
        """

    def select(self, sentences: Sequence[int], /) -> Constraint:
        """The constraint for a batch of the given `sentences`, in the order of `sentences`."""

    def needed(self, sentence: int, /) -> int:
        """The number of tokens that the constraint adds to the maximum length of a target."""


def log_softmax(logits: Float[Tensor, "rows vocab"]) -> Float[Tensor, "rows vocab"]:
    """`log p(token)` in float32, or in float64 for float64 logits; always a new tensor.

    A row of -inf stays -inf, because no token may follow; torch's `log_softmax` gives NaN. Logits
    that are NaN or +inf raise `InputError`.

    >>> log_softmax(torch.tensor([[0.0, 0.0], [-torch.inf, -torch.inf]])).tolist()
    [[-0.6931471824645996, -0.6931471824645996], [-inf, -inf]]
    """
    result = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
    undefined = result[:, 0].isnan()  # NaN fills its whole row: one column suffices
    if undefined.any():
        empty = logits.isneginf().all(dim=-1)
        if (undefined & ~empty).any():
            rows = (undefined & ~empty).nonzero().flatten().tolist()
            raise InputError(
                f"the step function gave NaN or +inf as logits in rows {rows}: check the weights"
                " and the parts of the model"
            )
        result[empty] = -torch.inf
    return result


def best_tokens(
    logits: Float[Tensor, "rows vocab"], count: int, never: Sequence[int] = ()
) -> tuple[Float[Tensor, "rows count"], Int64[Tensor, "rows count"]]:
    """`log p` and ids of at most `count` most probable tokens of each row, best first.

    The ids in `never` have a log-probability of -inf.

    >>> best_tokens(torch.tensor([[4.0, 9.0, 4.0, 4.0]]).log(), 2, never=[1])[0].exp()
    tensor([[0.1905, 0.1905]])
    """
    allowed = log_softmax(logits)
    allowed[:, list(never)] = -torch.inf
    best = allowed.topk(min(count, allowed.shape[1]), dim=1)
    return best.values, best.indices


@dataclass(frozen=True)
class ForcedPrefix:
    """The first tokens of each sentence's target; an empty prefix leaves the target free.

    The hypothesis holds the prefix, and the prefix's log-probability counts. An end symbol at the
    end of a prefix ends the target. Any other special id raises `ValueError`.

    >>> forced = ForcedPrefix([[5, 4], []])
    >>> rows, first = torch.tensor([0, 1]), torch.zeros(2, 0).long()
    >>> forced(torch.zeros(2, 6), first, rows).tolist()
    [[-inf, -inf, -inf, -inf, -inf, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """

    prefixes: Sequence[Sequence[int]]
    vocabulary: Vocabulary = DEFAULT_IDS

    def __post_init__(self) -> None:
        for sentence, prefix in enumerate(self.prefixes):
            if wrong := self.vocabulary.wrong_in_prefix(prefix):
                raise ValueError(
                    f"the prefix of sentence {sentence} holds the id {wrong[0]}, which is special"
                    " or negative: give ids of subwords"
                )

    def __call__(
        self,
        log_probabilities: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """The log-probabilities; within its prefix, a row has -inf for all but the next token."""
        length = tokens.shape[1]
        if all(len(prefix) <= length for prefix in self.prefixes):
            return log_probabilities
        following = [prefix[length] if length < len(prefix) else -1 for prefix in self.prefixes]
        if max(following) >= log_probabilities.shape[1]:
            raise ValueError(
                f"a prefix holds the id {max(following)}, but the step function's vocabulary has "
                f"{log_probabilities.shape[1]} ids"
            )
        forced = torch.tensor(following, device=sentences.device)[sentences].unsqueeze(1)
        ids = torch.arange(log_probabilities.shape[1], device=sentences.device)
        return log_probabilities.masked_fill((forced >= 0) & (ids != forced), -torch.inf)

    def select(self, sentences: Sequence[int]) -> ForcedPrefix:
        """The prefixes of the given `sentences`."""
        return ForcedPrefix([self.prefixes[i] for i in sentences], self.vocabulary)

    def needed(self, sentence: int) -> int:
        """The length of the sentence's prefix."""
        return len(self.prefixes[sentence])


@dataclass(frozen=True)
class OutputRules:
    """The targets that a search may return: maximum lengths, ids, constraints and processors.

    No target reads as empty: the first token is not the end symbol. After a first token of white
    space, the second token is neither white space nor the end symbol. A target begins with the
    vocabulary's prefix, which has log-probability 0. `max_lengths` (batch,) counts the steps of
    each sentence, the end symbol too. All tensors of a search are on the device of `max_lengths`.
    `best_tokens` chooses tokens where no rule but the special ids acts. A length below 1 raises
    `ValueError`.
    """

    max_lengths: Tensor
    vocabulary: Vocabulary = DEFAULT_IDS
    constraints: Sequence[Constraint] = ()
    processors: Sequence[LogitsProcessor] = ()
    best_tokens: BestTokens = best_tokens

    def __post_init__(self) -> None:
        lengths = self.max_lengths
        if lengths.dim() != 1 or lengths.dtype != torch.int64:
            raise ValueError(
                "max_lengths must be an int64 tensor of one length a sentence, not "
                f"{lengths.dtype} of shape {tuple(lengths.shape)}"
            )
        if (lengths < 1).any():
            raise ValueError(f"every maximum length must be at least 1, not {int(lengths.min())}")
        for prefixes in (getattr(each, "prefixes", lengths) for each in self.constraints):
            if len(prefixes) != len(lengths):
                raise ValueError(f"{len(prefixes)} prefixes for {len(lengths)} sentences")

    def sentences(self) -> Int64[Tensor, " batch"]:
        """The index of each sentence, 0 to batch - 1."""
        return torch.arange(len(self.max_lengths), device=self.max_lengths.device)

    def ids(
        self, numbers: Sequence[int] | Sequence[Sequence[int]] | NDArray[np.integer]
    ) -> Int64[Tensor, "*shape"]:
        """The given numbers as a tensor on the device of the search."""
        return torch.tensor(numbers, dtype=torch.int64, device=self.max_lengths.device)

    def start(self, rows: int) -> Int64[Tensor, " rows"]:
        """The tokens that the first step reads: the start symbol in every row."""
        return torch.full((rows,), self.vocabulary.bos_id, device=self.max_lengths.device)

    def best(
        self,
        logits: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        sentences: Int64[Tensor, " rows"],
        *,
        count: int,
    ) -> tuple[Float[Tensor, "rows count"], Int64[Tensor, "rows count"]]:
        """Log-probabilities and ids of the `count` most probable tokens that may follow."""
        begun = tokens.shape[1] >= len(self.vocabulary.prefix_ids)
        blank = self._blank_rows(tokens) is not None
        if self.constraints or self.processors or blank or not begun:
            allowed = self.log_probabilities(logits, tokens, sentences)
            best = allowed.topk(min(count, allowed.shape[1]), dim=1)
            return best.values, best.indices
        self.check_logits(logits, len(tokens))
        return self.best_tokens(logits, count, self._never(tokens.shape[1]))

    def log_probabilities(
        self,
        logits: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """The log-probabilities of the next token; a token that may not follow has -inf.

        The processors first change the logits of the model.
        """
        self.check_logits(logits, len(tokens))
        for processor in self.processors:
            logits = processor(logits, tokens)
        length, prefix = tokens.shape[1], self.vocabulary.prefix_ids
        if length < len(prefix):
            certain = torch.full_like(logits, -torch.inf)
            certain[:, prefix[length]] = 0
            logits = certain
        allowed = log_softmax(logits)
        blank = self._blank_rows(tokens)
        if blank is not None:
            visible = torch.ones(allowed.shape[1], dtype=torch.bool, device=allowed.device)
            visible[[*self.vocabulary.blank_ids, self.vocabulary.eos_id]] = False
            allowed = allowed.masked_fill(blank.unsqueeze(1) & ~visible, -torch.inf)
        allowed[:, list(self._never(tokens.shape[1]))] = -torch.inf
        for constraint in self.constraints:
            allowed = constraint(allowed, tokens, sentences)
        return allowed

    def _never(self, length: int) -> tuple[int, ...]:
        """The ids that may not follow a target of the given length."""
        never, empty = self.vocabulary.never_produced, len(self.vocabulary.prefix_ids)
        return never if length > empty else (*never, self.vocabulary.eos_id)

    def _blank_rows(self, tokens: Int64[Tensor, "rows length"]) -> Bool[Tensor, " rows"] | None:
        """True for each row that holds one token of white space alone; None without such a row.

        No second token of white space follows, so later steps need not look.
        """
        blank_ids = self.vocabulary.blank_ids
        if not blank_ids or tokens.shape[1] != len(self.vocabulary.prefix_ids) + 1:
            return None
        blank = [token in blank_ids for token in tokens[:, -1].tolist()]
        return torch.tensor(blank, device=tokens.device) if any(blank) else None

    def check_logits(self, logits: Tensor, rows: int) -> None:
        """Raise `ValueError` unless the logits have a row for each row of the search."""
        if logits.dim() != 2 or len(logits) != rows:
            raise ValueError(
                f"the step function must give logits of shape (rows, vocab) with {rows} "
                f"rows, not {tuple(logits.shape)}"
            )
