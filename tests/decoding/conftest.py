"""A toy language for the tests of the searches, and the search that cannot miss: all targets."""

import itertools
import math
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from glassformer.decoding.protocols import Hypothesis

BOS, EOS = 2, 3


@dataclass(frozen=True)
class ToyState:
    """Which sentence each row is, and what it has read; the rows seen by each step are counted."""

    sentences: Tensor
    history: Tensor
    seen: list[int] = field(default_factory=list)

    def select(self, rows: Tensor) -> "ToyState":
        return ToyState(self.sentences[rows], self.history[rows], self.seen)


class Toy:
    """A language with memory: the next logits depend on the sentence and the last two tokens."""

    def __init__(self, batch: int, vocab: int, *, seed: int = 0, end: float = 0.0) -> None:
        generator = torch.Generator().manual_seed(seed)
        shape = (batch, vocab, vocab, vocab)
        self.logits = 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
        self.logits[..., EOS] += end
        self.vocab = vocab

    def state(self, sentences: list[int] | None = None) -> ToyState:
        numbers = torch.arange(len(self.logits)) if sentences is None else torch.tensor(sentences)
        return ToyState(numbers, torch.empty(len(numbers), 0, dtype=torch.int64))

    def step(self, tokens: Tensor, state: ToyState) -> tuple[Tensor, ToyState]:
        assert tokens.shape == state.sentences.shape
        state.seen.append(len(tokens))
        history = torch.cat([state.history, tokens[:, None]], dim=1)
        before = history[:, -2] if history.shape[1] > 1 else torch.zeros_like(tokens)
        logits = self.logits[state.sentences, before, tokens]
        return logits, ToyState(state.sentences, history, state.seen)

    def log_probability(self, sentence: int, target: tuple[int, ...]) -> float:
        """Of these tokens after the start symbol, computed without any search."""
        total, before, last = 0.0, 0, BOS
        for token in target:
            row = self.logits[sentence, before, last].tolist()
            total += row[token] - math.log(sum(math.exp(x) for x in row))
            before, last = last, token
        return total

    def every_target(self, sentence: int, max_length: int, alpha: float) -> list[Hypothesis]:
        """All finished targets but the empty one, best first."""
        found = []
        for length in range(1, max_length):
            for target in itertools.product(range(4, self.vocab), repeat=length):
                total = self.log_probability(sentence, (*target, EOS))
                score = total / ((5 + length + 1) / 6) ** alpha
                found.append(Hypothesis(target, score, total, finished=True))
        return sorted(found, key=lambda one: -one.score)


@pytest.fixture(scope="session")
def toy() -> type[Toy]:
    """The toy language: ``toy(batch, vocab, seed=…, end=…)``."""
    return Toy
