"""The most probable next tokens, in half the time on a CPU.

The readable version is `best_tokens` in `decoding/constraints.py`. A test checks that both give
equal results (tests/decoding/fast/test_top_k.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.decoding.constraints import OutputRules, log_softmax

__all__ = ["likeliest", "likeliest_or_nan", "without_check"]

_ROWS_AT_ONCE = 32  # a block of rows that stays in the processor's cache through all passes
_GROUPS = 8
_MIN_GROUPED = 1 << 15  # numbers: `topk` of fewer is fast enough


def likeliest(
    logits: Float[Tensor, "rows vocab"],
    count: int,
    never: Sequence[int] = (),
) -> tuple[Float[Tensor, "rows count"], Int64[Tensor, "rows count"]]:
    """`log p` and ids of the `count` most probable tokens of each row, best first; at most all.

    This equals `log_softmax(logits)`, with -inf for the ids in `never`, and then `topk`.

    >>> likeliest(torch.tensor([[4.0, 9.0, 4.0, 4.0]]).log(), 2, never=[1])[0].exp()
    tensor([[0.1905, 0.1905]])
    """
    best, ids = likeliest_or_nan(logits, count, never)
    if not (best < torch.inf).all():  # NaN, rarely: a row of only -inf, or an error
        allowed = log_softmax(logits).index_fill_(1, _ids(tuple(never), logits.device), -torch.inf)
        return _top(allowed, min(count, logits.shape[1]))
    return best, ids


def likeliest_or_nan(
    logits: Float[Tensor, "rows vocab"],
    count: int,
    never: Sequence[int] = (),
) -> tuple[Float[Tensor, "rows count"], Int64[Tensor, "rows count"]]:
    """As `likeliest`, but with NaN for a row without a distribution: its logits are -inf or NaN.

    It does not ask whether a number is NaN, because the answer waits for a GPU.
    """
    count, rows = min(count, logits.shape[1]), max(len(logits), 1)
    if logits.device.type == "cpu":
        rows = _ROWS_AT_ONCE
    forbidden = _ids(tuple(never), logits.device)
    precise = torch.promote_types(logits.dtype, torch.float32)

    def allowed(part: Tensor) -> Tensor:
        return part.log_softmax(dim=1, dtype=precise).index_fill_(1, forbidden, -torch.inf)

    parts = [_top(allowed(part), count) for part in logits.split(rows)]
    best, ids = map(torch.cat, zip(*parts, strict=True))
    return best, ids


def without_check(rules: OutputRules) -> OutputRules:
    """The rules with `likeliest_or_nan` in the place of `likeliest`."""
    checked = rules.best_tokens is likeliest
    return replace(rules, best_tokens=likeliest_or_nan) if checked else rules


@cache
@torch.inference_mode(mode=False)  # gradients may use the cached tensor
def _ids(ids: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(ids, dtype=torch.int64, device=device)


def _top(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`topk`, on a CPU in two stages: each group holds one column from every eighth of the row.

    The `count` groups with the greatest maxima hold the `count` best values: a value of another
    group has at least `count` values above it.
    """
    rows, vocab = values.shape
    groups = vocab // _GROUPS
    if values.device.type != "cpu" or values.numel() < _MIN_GROUPED or groups < 4 * count:
        best = values.topk(count, dim=1)
        return best.values, best.indices
    folded = values[:, : groups * _GROUPS].view(rows, _GROUPS, groups)
    chosen = folded.amax(dim=1).topk(count, dim=1).indices  # (rows, count)
    eighths = torch.arange(0, groups * _GROUPS, groups).view(-1, 1)
    rest = torch.arange(groups * _GROUPS, vocab).expand(rows, -1)
    candidates = torch.cat(((chosen[:, None] + eighths).flatten(1), rest), dim=1)
    best = values.gather(1, candidates).topk(count, dim=1)
    return best.values, candidates.gather(1, best.indices)
