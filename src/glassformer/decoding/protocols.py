"""The protocols between the searches and a model: a step function, a state, and a hypothesis.

A search knows no model. It calls a *step function* with a state and the newest token of every row.
The step function returns the logits of the next token and the next state. The search itself only
selects rows of the state. The first step reads the start symbol.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.support.errors import InputError

__all__ = [
    "DEFAULT_IDS",
    "IMPOSSIBLE",
    "Candidate",
    "Hypothesis",
    "SpecialIds",
    "State",
    "StepFunction",
    "Vocabulary",
    "log_softmax",
    "select_beams",
]

Same = TypeVar("Same")


@runtime_checkable
class State(Protocol):
    """The decoder's cache between two steps; each row belongs to one hypothesis."""

    def select(self: Same, rows: Tensor, /) -> Same:
        """The state of the given `rows`, in the order of `rows`, which may omit or repeat a row."""
        ...


S = TypeVar("S", bound=State)


def select_beams(state: S, rows: Int64[Tensor, "sentences width"], *, all_stay: bool) -> S:
    """The given `rows` of any state; a line of `rows` has one sentence's unfinished targets.

    If `all_stay`, each sentence keeps its line, and only its targets change places. A state may
    have a faster `select_beams` of its own, which this function then calls.
    """
    select: Callable[..., S] | None = getattr(state, "select_beams", None)
    return state.select(rows.flatten()) if select is None else select(rows, all_stay=all_stay)


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


@runtime_checkable
class SpecialIds(Protocol):
    """The four special ids; a tokenizer and a model's config have these attributes."""

    pad_id: int
    unk_id: int
    bos_id: int
    eos_id: int


@dataclass(frozen=True)
class Vocabulary:
    """The four special ids, the ids that begin every target, and the ids of white space.

    `prefix_ids` begin every target, with a language for example. `blank_ids` are white space.

    >>> Vocabulary(bos_id=7).never_produced
    (0, 1, 7)
    """

    pad_id: int = 0
    unk_id: int = 1
    bos_id: int = 2
    eos_id: int = 3
    prefix_ids: tuple[int, ...] = ()
    blank_ids: frozenset[int] = frozenset()

    @classmethod
    def of(cls, ids: SpecialIds) -> Vocabulary:
        """The ids of a tokenizer or a config; a config has special ids alone."""
        prefix, blank = getattr(ids, "prefix_ids", ()), getattr(ids, "blank_ids", ())
        special = ids.pad_id, ids.unk_id, ids.bos_id, ids.eos_id
        return cls(*special, prefix_ids=tuple(prefix), blank_ids=frozenset(blank))

    @property
    def never_produced(self) -> tuple[int, ...]:
        """The ids that no translation holds: padding, unknown, start."""
        return tuple(sorted({self.pad_id, self.unk_id, self.bos_id} - {self.eos_id}))

    def wrong_in_prefix(self, prefix: Sequence[int]) -> list[int]:
        """The special and negative ids of a forced prefix, except an end symbol at its end.

        >>> Vocabulary().wrong_in_prefix([5, 2, -1, 3]), Vocabulary().wrong_in_prefix([3, 5])
        ([2, -1], [3])
        """
        special, last = {*self.never_produced, self.eos_id}, len(prefix) - 1
        return [
            token
            for place, token in enumerate(prefix)
            if token < 0 or (token in special and not (token == self.eos_id and place == last))
        ]


DEFAULT_IDS = Vocabulary()


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
