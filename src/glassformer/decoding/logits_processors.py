"""Logits processors: they change the logits of the next token, before the softmax.

A constraint forbids tokens, and leaves the model's log-probabilities of other tokens unchanged. A
logits processor comes before the softmax, so that a hypothesis has the log-probability of the
changed distribution. CTranslate2 processes logits in every search. Hugging Face processes logits in
greedy search and sampling, but log-probabilities in beam search.

The three processors here count the tokens of the target, without start and end symbol.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.decoding.vocabulary import DEFAULT_IDS, Vocabulary

__all__ = ["LogitsProcessor", "MinLength", "NoRepeatNgram", "RepetitionPenalty"]

LogitsProcessor: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""`processor(logits (rows, vocab), tokens (rows, length)) -> logits (rows, vocab)`; `tokens` holds
each row's tokens so far. A processor changes neither `logits` nor `tokens` in place."""


@dataclass(frozen=True)
class RepetitionPenalty:
    """Makes each token of the target so far less probable (Keskar et al. 2019, section 4.1).

    The processor divides a positive logit by the penalty, and multiplies a negative logit by the
    penalty. It penalises a token once, even if the target holds the token several times.

    >>> tokens = torch.tensor([[0, 1, 0]])
    >>> RepetitionPenalty(2.0)(torch.tensor([[3.0, -1.0, 2.0]]), tokens).tolist()
    [[1.5, -2.0, 2.0]]
    """

    penalty: float

    def __call__(
        self, logits: Float[Tensor, "rows vocab"], tokens: Int64[Tensor, "rows length"]
    ) -> Float[Tensor, "rows vocab"]:
        """The logits, after the penalty on each token that the target holds."""
        before = logits.gather(1, tokens)
        after = torch.where(before < 0, before * self.penalty, before / self.penalty)
        return logits.scatter(1, tokens, after)


@dataclass(frozen=True)
class NoRepeatNgram:
    """Forbids each token that would repeat an n-gram of the target.

    >>> tokens = torch.tensor([[0, 1, 2, 0]])  # the target holds 0 1
    >>> NoRepeatNgram(2)(torch.zeros(1, 4), tokens).tolist()
    [[0.0, -inf, 0.0, 0.0]]
    """

    size: int

    def __call__(
        self, logits: Float[Tensor, "rows vocab"], tokens: Int64[Tensor, "rows length"]
    ) -> Float[Tensor, "rows vocab"]:
        """The logits, with -inf for each token that would repeat an n-gram."""
        length = tokens.shape[1]
        if length < self.size:
            return logits
        ngrams = tokens.unfold(1, self.size, 1)  # (rows, ngrams, size)
        begun = tokens[:, length - self.size + 1 :].unsqueeze(1)
        rows, places = (ngrams[:, :, :-1] == begun).all(dim=2).nonzero(as_tuple=True)
        allowed = logits.clone()
        allowed[rows, ngrams[rows, places, -1]] = -torch.inf
        return allowed


@dataclass(frozen=True)
class MinLength:
    """Lets no target end before it has `length` tokens.

    Below that length the softmax is over the subwords alone, as in CTranslate2. No special id takes
    the end symbol's probability.

    >>> MinLength(1)(torch.zeros(1, 5), torch.zeros(1, 0).long()).tolist()
    [[-inf, -inf, -inf, -inf, 0.0]]
    """

    length: int
    vocabulary: Vocabulary = DEFAULT_IDS

    def __call__(
        self, logits: Float[Tensor, "rows vocab"], tokens: Int64[Tensor, "rows length"]
    ) -> Float[Tensor, "rows vocab"]:
        """The logits, with -inf for the special ids if the targets are too short."""
        if tokens.shape[1] >= self.length:
            return logits
        special = (*self.vocabulary.never_produced, self.vocabulary.eos_id)
        return logits.index_fill(1, torch.tensor(special, device=logits.device), -torch.inf)
