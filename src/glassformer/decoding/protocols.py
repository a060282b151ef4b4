"""What the searches and a model agree on: a step function, a state, and the hypothesis found.

A search knows no model. It holds a *step function*, which takes the newest token of every row and
a state and gives the logits of the next token and the next state, and the *state*, of which it
knows one thing: it can pick rows. The first step feeds the start symbol.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

__all__ = [
    "DEFAULT_IDS",
    "IMPOSSIBLE",
    "Hypothesis",
    "SpecialIds",
    "State",
    "StepFunction",
    "Vocabulary",
    "likeliest",
    "log_softmax",
    "select_beams",
]

Same = TypeVar("Same")


@runtime_checkable
class State(Protocol):
    """What a decoder carries from step to step; each row belongs to one hypothesis."""

    def select(self: Same, rows: Tensor, /) -> Same:
        """The state of these rows, in this order; a row may be left out or taken twice."""
        ...


S = TypeVar("S", bound=State)


@runtime_checkable
class GroupedState(State, Protocol):
    """A state that gains from knowing which rows are unfinished targets of one sentence."""

    def select_beams(self: Same, rows: Tensor, /) -> Same:
        """`select` for rows (sentences, width): the targets of a sentence stay side by side."""
        ...


def select_beams(state: S, rows: Int64[Tensor, "sentences width"]) -> S:
    """These rows of any state; of one that knows groups, as groups."""
    if isinstance(state, GroupedState):
        return state.select_beams(rows)
    return state.select(rows.flatten())


StepFunction: TypeAlias = Callable[[Tensor, S], tuple[Tensor, S]]
"""`step(tokens (rows,), state) -> (logits (rows, vocab), state)`"""


@dataclass(frozen=True)
class Hypothesis:
    """One target that a search found.

    `tokens` are its ids without start and end symbol. `log_probability` is the sum of the natural
    logarithms that the model gives them, the end symbol included. `score` is what the search ranks
    by; beam search divides by the length penalty, the others do not. `finished` is False where the
    search was cut at the maximum length before the end symbol.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    finished: bool


IMPOSSIBLE = Hypothesis((), -math.inf, -math.inf, finished=False)
"""What stands for a sentence where every possible target has probability zero."""


@runtime_checkable
class SpecialIds(Protocol):
    """What has the four special ids: a tokenizer, a model's config."""

    pad_id: int
    unk_id: int
    bos_id: int
    eos_id: int


@dataclass(frozen=True)
class Vocabulary:
    """The four special ids.

    >>> Vocabulary(bos_id=7).never_produced
    (0, 1, 7)
    """

    pad_id: int = 0
    unk_id: int = 1
    bos_id: int = 2
    eos_id: int = 3

    @classmethod
    def of(cls, one: SpecialIds) -> Vocabulary:
        """Those of a tokenizer."""
        return cls(one.pad_id, one.unk_id, one.bos_id, one.eos_id)

    @property
    def never_produced(self) -> tuple[int, ...]:
        """The ids that mean nothing in a translation: padding, unknown, start."""
        return tuple(sorted({self.pad_id, self.unk_id, self.bos_id} - {self.eos_id}))


DEFAULT_IDS = Vocabulary()


def log_softmax(logits: Float[Tensor, "rows vocab"]) -> Float[Tensor, "rows vocab"]:
    """`log p(token)` in float32, or in float64 where the logits are; always a new tensor.

    Unlike torch's, a row of -inf only stays -inf: from there on nothing is possible. Raises
    `ValueError` for logits that are NaN or +inf.

    >>> log_softmax(torch.tensor([[0.0, 0.0], [-torch.inf, -torch.inf]])).tolist()
    [[-0.6931471824645996, -0.6931471824645996], [-inf, -inf]]
    """
    result = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
    undefined = result[:, 0].isnan()  # then the whole row is: one column tells
    if undefined.any():
        empty = logits.isneginf().all(dim=-1)
        if (undefined & ~empty).any():
            rows = (undefined & ~empty).nonzero().flatten().tolist()
            raise ValueError(f"the step function gave logits that are NaN or +inf in rows {rows}")
        result[empty] = -torch.inf
    return result


# So many rows are looked at together that the processor's cache holds them, through all passes.
_ROWS_AT_ONCE = 32
_GROUPS = 8
_MUCH = 1 << 15


def likeliest(
    logits: Float[Tensor, "rows vocab"],
    count: int,
    *,
    never: Sequence[int] = (),
) -> tuple[Float[Tensor, "rows count"], Int64[Tensor, "rows count"]]:
    """The `count` most probable tokens of each row, or all there are: `log p` and ids, best first.

    The same as `log_softmax(logits)`, with -inf for the ids in `never`, and its `topk`; on a CPU in
    half the time.

    >>> likeliest(torch.tensor([[4.0, 9.0, 4.0, 4.0]]).log(), 2, never=[1])[0].exp()
    tensor([[0.1905, 0.1905]])
    """
    count, together = min(count, logits.shape[1]), max(len(logits), 1)
    if logits.device.type == "cpu":
        together = _ROWS_AT_ONCE
    barred = _ids(tuple(never), logits.device)
    precise = torch.promote_types(logits.dtype, torch.float32)

    def allowed(part: Tensor) -> Tensor:
        return part.log_softmax(dim=1, dtype=precise).index_fill_(1, barred, -torch.inf)

    found = [_top(allowed(part), count) for part in logits.split(together)]
    best, ids = map(torch.cat, zip(*found, strict=True))
    if not (best < torch.inf).all():  # NaN, seldom: a row of -inf only, or an error
        return _top(log_softmax(logits).index_fill_(1, barred, -torch.inf), count)
    return best, ids


@cache
@torch.inference_mode(mode=False)  # what is kept may be used by whoever computes gradients
def _ids(ids: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(ids, dtype=torch.int64, device=device)


def _top(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`topk`; of much, on a CPU, in two stages: columns are put into groups, one from each eighth.

    The best of a row can only be in the groups whose greatest values are the best: all others
    have as many values above them.
    """
    rows, vocab = values.shape
    groups = vocab // _GROUPS
    if values.device.type != "cpu" or values.numel() < _MUCH or groups < 4 * count:
        best = values.topk(count, dim=1)
        return best.values, best.indices
    folded = values[:, : groups * _GROUPS].view(rows, _GROUPS, groups)
    chosen = folded.amax(dim=1).topk(count, dim=1).indices  # (rows, count)
    eighths = torch.arange(0, groups * _GROUPS, groups).view(-1, 1)
    rest = torch.arange(groups * _GROUPS, vocab).expand(rows, -1)
    candidates = torch.cat(((chosen[:, None] + eighths).flatten(1), rest), dim=1)
    best = values.gather(1, candidates).topk(count, dim=1)
    return best.values, candidates.gather(1, best.indices)
