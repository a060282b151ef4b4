"""The protocols between the searches and a model: a step function, a state, and a hypothesis.

A search knows no model. It calls a *step function* with a state and the newest token of every row.
The step function returns the logits of the next token and the next state. The search itself only
selects rows of the state. The first step reads the start symbol.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from torch import Tensor

__all__ = ["IMPOSSIBLE", "Candidate", "Hypothesis", "State", "StepFunction"]

Same = TypeVar("Same")


@runtime_checkable
class State(Protocol):
    """The decoder's cache between two steps; each row belongs to one hypothesis."""

    def select(self: Same, rows: Tensor, /) -> Same:
        """The state of the given `rows`, in the order of `rows`, which may omit or repeat a row."""


S = TypeVar("S", bound=State)

StepFunction: TypeAlias = Callable[[Tensor, S], tuple[Tensor, S]]
"""A step function has the form `step(tokens (rows,), state) -> (logits (rows, vocab), state)`."""


@dataclass(frozen=True)
class Hypothesis:
    """One target that a search found.

    `tokens` are the target's ids without start and end symbol. `log_probability` is the sum of the
    tokens' natural log-probabilities, including the end symbol's. A search ranks by `score`: only
    beam search divides the log-probability by the length penalty. `finished` is False if the
    maximum length cuts the target before the end symbol.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    finished: bool


IMPOSSIBLE = Hypothesis((), -math.inf, -math.inf, finished=False)
"""The hypothesis of a sentence if every possible target has probability zero."""


class Candidate(NamedTuple):
    """A target that a step of beam search may continue, at `row` of the step's state."""

    tokens: tuple[int, ...]
    log_probability: float
    row: int
