"""The dynamic loss scale, with which gradients in float16 neither vanish nor overflow.

The smallest number of float16 is 6e-8, and many gradients are smaller. So a scale multiplies the
gradient of the loss, before the backward pass, and the optimiser divides the weights' gradients by
the scale (Micikevicius et al. 2018, section 3.2). If a gradient overflows, the update changes no
weight, and the scale halves. After many updates without an overflow, the scale doubles.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.batches import Batch
from glassformer.model.transformer import Transformer
from glassformer.training.loss import Losses

__all__ = ["LossScale"]

_FIRST, _LEAST = 2.0**16, 1.0
_PATIENCE = 2000  # updates without an overflow, after which the scale doubles


class LossScale:
    """The loss scale of an optimiser, whose first group holds the scale for the checkpoint.

    The scale stays on the device, so the host does not wait.
    """

    def __init__(self, optimiser: torch.optim.Optimizer) -> None:
        self._group = optimiser.param_groups[0]  # a loaded checkpoint has filled it
        device = self._group["params"][0].device
        self._group.setdefault("loss_scale", torch.tensor(_FIRST, device=device))
        self._group.setdefault("updates_since_overflow", torch.tensor(0, device=device).int())

    @property
    def value(self) -> Float[Tensor, ""]:
        scale: Tensor = self._group["loss_scale"]
        return scale

    def scaled(self, losses: Losses) -> Losses:
        """The same losses, with gradients times the scale."""

        def with_scale(model: Transformer, batch: Batch) -> tuple[Tensor, Tensor]:
            loss, unsmoothed = losses(model, batch)
            loss.register_hook(lambda gradient: gradient * self.value)
            return loss, unsmoothed

        return with_scale

    def without_overflow(self, norm: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """The norm of the gradient, or 0 if the gradient overflows and the scale can still halve.

        At the least scale, a norm that is not finite stays, and the run ends with an error.
        """
        return norm.masked_fill(~norm.isfinite() & (self.value > _LEAST), 0.0)

    def update(self, overflow: Float[Tensor, ""]) -> None:
        """Halve the scale if ``overflow`` is 1; double the scale after many updates of 0."""
        since = self._group["updates_since_overflow"]
        torch._amp_update_scale_(self.value, since, overflow, 2.0, 0.5, _PATIENCE)
