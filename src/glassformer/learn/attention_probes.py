"""Probes of other attentions. The queries are the last positions of the keys."""

from collections.abc import Callable

import torch
from torch import Tensor

from glassformer.learn.check import Probe, Solution, numbers, probe, unchanged

__all__ = ["POSITION_LAWS", "attention_probes"]

HIDDEN = ", a mask (2, 11) that hides the first 4 keys"


def _shapes(q_len: int, k_len: int, heads: int = 3, groups: int = 3) -> str:
    sizes = f"(2, {groups}, {k_len}, "
    return f"query (2, {heads}, {q_len}, 14), key {sizes}14), value {sizes}11)"


def attention_probes(
    attend: Callable[..., Tensor], heads: int = 3, groups: int = 3
) -> tuple[Probe, ...]:
    """Probes of ``attend(solution, query, key, value, mask)``."""

    def attended(
        q_len: int, k_len: int, text: str = "", mask: Tensor | None = None, *, scale: int = 1
    ) -> Probe:
        def run(solution: Solution) -> dict[str, Tensor]:
            query, key = numbers(2, heads, 11, 14) * scale, numbers(2, groups, 11, 14, seed=1)
            value = numbers(2, groups, 11, 11, seed=2)
            inputs = query[:, :, -q_len:], key[:, :, -k_len:], value[:, :, -k_len:]
            return {"output": attend(solution, *inputs, mask)}

        return probe(_shapes(q_len, k_len, heads, groups) + text, run)

    later, first = torch.ones(7, 7).tril().bool(), torch.tensor([[True], [False]]).expand(2, 7)
    padding = torch.arange(7) < torch.tensor([7, 4])[:, None, None, None]
    return (
        attended(7, 7),
        attended(7, 7, ", a mask (7, 7) that hides later keys", later),
        attended(2, 7, ", a mask (2, 1, 1, 7) that hides keys of the second sentence", padding),
        attended(2, 7, f", a mask (2, {heads}, 2, 7)", numbers(2, heads, 2, 7, seed=3) > 0),
        attended(2, 7, ", a mask (2, 7) that hides all keys from query 1", first),
        attended(2, 7, ", queries times 1,000", scale=1000),
        attended(2, 7),
        attended(2, 11, HIDDEN, (torch.arange(11) >= 4).expand(2, 11)),
    )


POSITION_LAWS = {
    "Hidden keys in front move all positions, and no score depends on that.": unchanged(
        _shapes(2, 7), _shapes(2, 11) + HIDDEN, "Four hidden keys change the output by {}."
    )
}
