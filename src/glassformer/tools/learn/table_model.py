"""A toy language model, two tables of logits, to probe a search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.logits_processors import RepetitionPenalty
from glassformer.decoding.protocols import Hypothesis
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.tools.learn.check import returned
from glassformer.tools.learn.inputs import drawn, given
from glassformer.tools.learn.situations import NONE, Situation

__all__ = ["SEARCH", "Read", "TableModel", "rules_of", "shown"]

REPEATED = "rules that punish repeated tokens"
OWN = "rules that make other tokens less probable in each sentence"
SEARCH: dict[str, Any] = {
    "strides": NONE,
    "gradients": ("no gradient is wanted",),
    "mode": NONE,
    "rules": ("", REPEATED, OWN),
}
"""The axes of all searches."""

_MOST_STEPS = 100


@dataclass(frozen=True)
class Own:
    """A constraint that makes another token less probable in each sentence."""

    def __call__(self, log_probabilities: Tensor, _: Tensor, sentences: Tensor) -> Tensor:
        tokens = torch.arange(log_probabilities.size(1))
        return log_probabilities - 3.0 * (tokens == 4 + sentences[:, None] % 3)

    def select(self, _: Sequence[int]) -> "Own":
        return self

    def needed(self, _: int) -> int:
        return 0


def rules_of(s: Situation, lengths: Sequence[int], vocabulary: Vocabulary) -> OutputRules:
    """The rules of a situation, which read all tokens of a row, or the row's sentence."""
    return OutputRules(
        given(lengths),
        vocabulary,
        constraints=[Own()] if s.rules == OWN else [],
        processors=[RepetitionPenalty(9.0)] if s.rules == REPEATED else [],
    )


def shown(answers: Sequence[Sequence[Hypothesis]]) -> dict[str, Any]:
    """The named values of a search's answer."""
    every = [hypothesis for answer in returned(answers) for hypothesis in answer]
    return {
        "targets": str([[[int(token) for token in x.tokens] for x in each] for each in answers]),
        "finished": str([bool(each.finished) for each in every]),
        "log-probabilities": torch.tensor([float(each.log_probability) for each in every]),
        "scores": torch.tensor([float(each.score) for each in every]),
    }


@dataclass(frozen=True)
class Read:
    """The state of a search: the sentence of each row, and the tokens that the row has read."""

    sentences: Tensor  # (rows,)
    tokens: Tensor  # (rows, length)

    def select(self, rows: Tensor) -> "Read":
        """The state of ``rows``, in the order of ``rows``."""
        return Read(self.sentences[rows], self.tokens[rows])


class TableModel:
    """A model whose next logits are a sum of two tables.

    ``by_place`` (sentences, places, vocab) depends on the sentence and on the number of tokens,
    ``by_tokens`` (vocab, vocab, vocab) on the last two tokens. So a state that forgets tokens,
    reads tokens twice, or confuses rows gives other logits.

    >>> language = TableModel.random(2, 7)
    >>> logits, state = language.step(torch.tensor([1, 1]), language.state())
    >>> logits.shape, state.tokens.tolist()
    (torch.Size([2, 7]), [[1], [1]])
    """

    def __init__(self, by_place: Tensor, by_tokens: Tensor) -> None:
        self.by_place, self.by_tokens = by_place, by_tokens
        self.steps = self.rows_read = 0

    @classmethod
    def random(cls, sentences: int, vocab: int, *, seed: int = 0) -> "TableModel":
        """A model with random tables."""
        by_place = drawn((sentences, 11, vocab), seed).clone()
        return cls(by_place, drawn((vocab, vocab, vocab), seed + 1).clone())

    @classmethod
    def table(cls, rows: dict[int, list[float]]) -> "TableModel":
        """A model of one sentence; ``rows[token]`` are the probabilities after ``token``."""
        vocab = len(next(iter(rows.values())))
        probabilities = torch.full((vocab, vocab), 1 / vocab, dtype=torch.float64)
        for token, row in rows.items():
            probabilities[token] = torch.tensor(row, dtype=torch.float64)
        logits = probabilities.clamp(min=1e-9).log()
        place = torch.zeros(1, 1, vocab, dtype=torch.float64)
        return cls(place, logits.expand(vocab, vocab, vocab))

    def state(self) -> Read:
        """The state before the first step: a row for each sentence."""
        rows = torch.arange(len(self.by_place))
        return Read(rows, rows.new_empty(len(rows), 0))

    def step(self, tokens: Tensor, state: Read) -> tuple[Tensor, Read]:
        """The logits (rows, vocab) of the next token, and the next state."""
        rows, vocab = len(state.sentences), len(self.by_tokens)
        if tokens.shape != (rows,):
            raise ValueError(
                f"the step function expects one token for each row of the state, ({rows},);"
                f" got {tuple(tokens.shape)}"
            )
        if ((tokens < 0) | (tokens >= vocab)).any():
            raise ValueError(f"the token {int(tokens.max())} is outside the vocabulary of {vocab}")
        self.steps, self.rows_read = self.steps + 1, self.rows_read + rows
        if self.steps > _MOST_STEPS:
            raise ValueError(f"the search does not end: it made {_MOST_STEPS} steps")
        length = state.tokens.size(1)
        before = state.tokens[:, -1] if length else torch.zeros_like(tokens)
        place = self.by_place[:, length % self.by_place.size(1)]
        logits = place[state.sentences] + self.by_tokens[before, tokens]
        return logits, Read(state.sentences, torch.cat([state.tokens, tokens[:, None]], dim=1))
