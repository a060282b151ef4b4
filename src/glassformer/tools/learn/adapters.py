"""Adapts lesson parts whose form differs from the form in the package.

``ADAPTERS`` names the place of such a part in the package, and gives the part the package's form.
The package's plain path never calls the parts in ``UNUSED``.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from glassformer.tools.learn.lesson import lesson

__all__ = ["ADAPTERS", "UNUSED", "Adapter"]

Adapter = Callable[[Callable[..., Any]], Callable[..., Any]]


def _attend(own: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Run ``self.attention`` for an observer even if the learner's ``attend`` does not use it."""

    def attend(
        self: Any, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        plain = type(self).__init__.__globals__["scaled_dot_product_attention"]
        if self.attention is not plain:  # ``with_weights`` and ``capture`` put an observer there
            self.attention(self.split(self.query(query)), keys, values, mask)
        return own(self, query, keys, values, mask)

    return attend


def _positions(own: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``model.positions.sinusoidal_positions`` from a learner's function, which may return float64.

    Loading builds a bundle's model on the meta device, where the table needs numbers too.
    """

    def sinusoidal_positions(*arguments: Any, **options: Any) -> Tensor:
        with torch.device("cpu"):
            return own(*arguments, **options).float()

    return sinusoidal_positions


def _adam(own: Callable[..., Any]) -> Callable[..., Any]:
    """``training.optimiser.adam_of`` from a learner's function, which updates one weight."""

    class OwnAdam(torch.optim.Optimizer):
        """Adam that updates one weight after another."""

        @torch.no_grad()
        def step(self, _closure: Any = None) -> Any:
            for group in self.param_groups:
                for weight in group["params"]:
                    _update(own, weight, self.state[weight], group)

    return lambda weights: OwnAdam(weights, {"lr": 0.0, "betas": (0.9, 0.98), "eps": 1e-9})


def _update(own: Callable[..., Any], weight: Any, kept: Any, group: Any) -> None:
    """Change one weight by the learner's step; keep the state under the names of torch's Adam."""
    means = [kept.get(name, torch.zeros_like(weight)) for name in ("exp_avg", "exp_avg_sq")]
    new, (count, mean, square) = own(
        weight.detach(),
        weight.grad,
        state=(int(kept.get("step", 0)), *means),
        rate=group["lr"],
        betas=group["betas"],
        epsilon=group["eps"],
    )
    weight.copy_(new)
    kept.update(step=torch.tensor(float(count)), exp_avg=mean, exp_avg_sq=square)


ADAPTERS: Mapping[str, tuple[str, Adapter]] = {
    "tools.learn.lessons.schedule.plain.adam_step": ("training.optimiser.adam_of", _adam),
    "model.attention.MultiHeadAttention.attend": (
        "model.attention.MultiHeadAttention.attend",
        _attend,
    ),
    "model.positions.sinusoidal_positions": ("model.positions.sinusoidal_positions", _positions),
    "tools.learn.lessons.embeddings.plain.Transformer.project": (
        "model.transformer.Transformer.project",
        lambda own: own,
    ),
}
UNUSED: Mapping[str, str] = {
    "tools.learn.lessons.blocks.plain.layer_norm": "torch has a LayerNorm",
    **dict.fromkeys(lesson("subwords").holes.values(), "SentencePiece learns the subwords"),
}
"""Places in lessons that the plain path never calls, each with the reason."""
