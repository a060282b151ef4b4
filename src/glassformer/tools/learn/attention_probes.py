"""Probes and laws of exercises on attention; the queries are the last positions of the keys."""

from collections.abc import Callable

import torch
from torch import Tensor

from glassformer.tools.learn.check import Evidence, Probe, Results, Solution, probe, unchanged
from glassformer.tools.learn.inputs import given, hides, numbers

__all__ = ["attention_probes", "position_laws", "sums_to_one"]


def attention_probes(
    attend: Callable[..., Tensor], heads: int = 3, groups: int = 3
) -> tuple[Probe, ...]:
    """Probes of ``attend(solution, query, key, value, mask)``."""

    def attended(
        q_len: int, k_len: int, text: str = "", mask: Tensor | None = None, *, scale: int = 1
    ) -> Probe:
        def run(solution: Solution) -> dict[str, Tensor]:
            query = numbers(2, heads, 11, 14, name="query") * scale
            key = numbers(2, groups, 11, 14, seed=1, name="key")
            value = numbers(2, groups, 11, 11, seed=2, name="value")
            inputs = query[:, :, -q_len:], key[:, :, -k_len:], value[:, :, -k_len:]
            return {"output": attend(solution, *inputs, None if mask is None else given(mask))}

        sizes = f"(2, {groups}, {k_len}, "
        shapes = f"query (2, {heads}, {q_len}, 14), key {sizes}14), value {sizes}11)"
        return probe(shapes + text, run)

    later, first = torch.ones(7, 7).tril().bool(), torch.tensor([[True], [False]]).expand(2, 7)
    last = torch.arange(11) >= 4
    return (
        attended(7, 7),
        attended(7, 7, ", a mask (7, 7) that hides later keys", later),
        attended(2, 7, ", a mask (2, 1, 1, 7) that hides keys of the second sentence", hides(7, 3)),
        attended(2, 7, f", a mask (2, {heads}, 2, 7)", numbers(2, heads, 2, 7, seed=3) > 0),
        attended(2, 7, ", a mask (2, 7) that hides all keys from query 1", first),
        attended(2, 7, ", queries times 1,000", scale=1000),
        attended(2, 7),
        attended(2, 11, ", a mask (2, 11) that hides the first 4 keys", last.expand(2, 11)),
    )


def position_laws(probes: tuple[Probe, ...]) -> dict[str, Evidence]:
    """The laws of attention that sees only distances; the last two probes show the laws."""
    *_, short, hidden = probes
    return {
        "Hidden keys in front move all positions, and no score depends on that.": unchanged(
            short, hidden, "Four hidden keys change the output by {}."
        )
    }


def sums_to_one(*probes: Probe) -> Evidence:
    """Evidence that names the first query whose weights do not sum to 1."""

    def evidence(results: Results) -> str | None:
        for each in probes:
            for place, total in enumerate(results[each.__name__]["weights"].sum(-1).flatten()):
                if not abs(total - 1) < 1e-6:  # float32 is said elsewhere
                    return f"The weights of query {place} sum to {total:.4g}."
        return None

    return evidence
