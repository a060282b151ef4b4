"""Adam with the paper's constants (section 5.3), and one update of the weights."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import call
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.data.batches import Batch
from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError
from glassformer.training.loss import batch_losses
from glassformer.training.loss_scale import LossScale
from glassformer.training.parallel.ranks import ALONE, Ranks

__all__ = ["Learner", "MixedPrecision", "NewOptimiser", "NotFiniteError", "Update", "adam_of"]

NewOptimiser = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
"""A function from weights to an optimiser of the weights, such as :func:`adam_of`."""

MixedPrecision = Callable[..., tuple[Transformer, Callable[[], None]]]
"""A function from a model to a copy in fewer bits, and to a call that renews the copy."""


class NotFiniteError(ArithmeticError):
    """The loss or the gradient is NaN or infinite. The weights are unchanged."""


@dataclass(frozen=True)
class Update:
    """Smoothed loss, unsmoothed loss, gradient norm and number of tokens of one update.

    The losses are means in nats a target token. The losses stay on the device until :meth:`read`,
    which waits for a GPU.
    """

    losses: Float[Tensor, " 3"]
    tokens: int

    def read(self) -> tuple[float, float, float]:
        """The losses and the norm; raises :class:`NotFiniteError` if a number is not finite."""
        loss, unsmoothed, norm = self.losses.tolist()
        if not all(map(math.isfinite, (loss, unsmoothed, norm))):
            raise NotFiniteError(f"loss {loss}, gradient norm {norm}")
        return loss, unsmoothed, norm


def adam_of(weights: list[nn.Parameter]) -> torch.optim.Adam:
    """Adam with betas 0.9 and 0.98 and epsilon 1e-9; each update sets the learning rate."""
    return torch.optim.Adam(weights, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


_PAPER_LOSSES = partial(batch_losses, smoothing=0.1)


class Learner:
    """A model with its optimiser, the losses, the precision and the ranks of its gradient.

    Each of the ranks' shares has a model of its own with the same weights. If the mixed precision
    is float16, the learner has a loss scale.
    """

    def __init__(
        self,
        model: Transformer,
        optimiser: torch.optim.Optimizer,
        *,
        losses: Callable[[Transformer, Batch], tuple[Tensor, Tensor]] = _PAPER_LOSSES,
        mixed_precision: MixedPrecision | None = None,
        clip: float = 0.0,
        ranks: Ranks = ALONE,
    ) -> None:
        self.model, self.optimiser, self.losses = model, optimiser, losses
        self.clip, self.ranks = clip, ranks
        self.replayed: Callable[..., Tensor] | None = None  # in the place of backward
        self._twins = [_twin(model) for _ in range(ranks.shares.count - 1)]
        self._computed_with = [model, *self._twins]
        self._refreshes: list[Callable[[], None]] = []
        if mixed_precision:
            copies = [mixed_precision(each) for each in self._computed_with]
            self._computed_with = [rounded for rounded, _ in copies]
            self._refreshes = [refresh for _, refresh in copies]
        types = {weight.dtype for weight in self._computed_with[0].parameters()}
        self.loss_scale = LossScale(optimiser) if torch.float16 in types else None
        if self.loss_scale:
            self.losses = self.loss_scale.scaled(losses)
        drawing: Any  # a module that draws random numbers
        for each, generator in zip(self._computed_with[1:], ranks.shares.generators, strict=True):
            for drawing in each.modules():
                if hasattr(drawing, "generator"):
                    drawing.generator = generator

    def update(self, batches: Sequence[Batch], *, rate: float) -> Update:
        """One step of the optimiser on the gradient of all ``batches`` together."""
        losses = self.step(*self.gradient(batches), rate=rate)
        return Update(losses, sum(batch.tokens for batch in batches))

    def gradient(self, batches: Sequence[Batch]) -> tuple[list[Tensor], Float[Tensor, " 2"]]:
        """The gradient of all ``batches`` of all ranks, and both losses, equal on each rank.

        Each batch adds a sum over target tokens, divided by the tokens of all batches. So N small
        batches of any sizes on R ranks give the gradient of one large batch.
        """
        shares, parameters = self.ranks.shares, list(self.model.parameters())
        self.optimiser.zero_grad(set_to_none=True)
        for twin in self._twins:
            twin.zero_grad(set_to_none=True)
        shares.seed()
        rows = [[batch.share(place) for batch in batches] for place in shares.places()]
        target_tokens = sum(batch.target_tokens for batch in batches)
        backward = partial(self.replayed or self.backward, target_tokens=target_tokens)
        totals = torch.stack(shares.map(backward, self._computed_with, rows)).sum(dim=0)
        shares.map(self._take_from_twins, shares.places())
        empty = not any(batch.labels.size(0) for batch in batches)  # a rank's share of few rows
        if not empty and all(weight.grad is None for weight in parameters):
            remedy = "add each gradient to the grad of the model's weight"
            raise InputError(f"mixed_precision gives the model no gradient: {remedy}")
        gradients = [
            torch.zeros_like(weight) if weight.grad is None else weight.grad
            for weight in parameters
        ]
        *gradients, totals = self.ranks.sum([*gradients, totals])
        for weight, gradient in zip(parameters, gradients, strict=True):
            weight.grad = gradient
        return gradients, totals

    def backward(
        self, model: Transformer, batches: Sequence[Batch], *, target_tokens: int | Tensor
    ) -> Float[Tensor, " 2"]:
        """Add the gradient of the batches to the weights' gradients; return both losses."""
        totals = torch.zeros(2, device=model.output_weight.device)
        for batch in batches:
            if batch.labels.size(0):  # a share of a small batch may be none
                losses = torch.stack(self.losses(model, batch)) / target_tokens
                losses[0].backward()
                totals += losses.detach()
        return totals

    def _take_from_twins(self, place: slice) -> None:
        """Add the twins' gradients of the weights at ``place`` to the model's gradients."""
        weights = list(self.model.parameters())[place]
        for twin in self._twins:
            for weight, other in zip(weights, list(twin.parameters())[place], strict=True):
                if other.grad is not None:
                    weight.grad = (
                        other.grad if weight.grad is None else weight.grad.add_(other.grad)
                    )
                    other.grad = None

    def step(self, gradients: list[Tensor], totals: Tensor, *, rate: float) -> Tensor:
        """Change the weights, unless a loss or the gradient is not finite."""
        norm = nn.utils.get_total_norm(gradients)
        if self.loss_scale:
            norm /= self.loss_scale.value
        losses = torch.cat((totals, norm[None]))
        scale = (norm / self.clip).clamp(min=1.0) if self.clip > 0 else None
        if self.loss_scale:
            scale = self.loss_scale.value * (1.0 if scale is None else scale)
        finite = torch.isfinite(losses.sum())
        optimiser: Any = self.optimiser
        for group in optimiser.param_groups:
            group["lr"] = rate
        # A fused optimiser divides the gradient by grad_scale and skips the step if found_inf is 1.
        # It reads both on the device. For any other optimiser, the host waits for the device.
        if getattr(optimiser, "_step_supports_amp_scaling", False):
            optimiser.grad_scale, optimiser.found_inf = scale, (~finite).float()
            optimiser.step()
        elif finite:
            if scale is not None:
                torch._foreach_div_(gradients, scale)
            optimiser.step()
        if self.loss_scale:
            losses[2] = self.loss_scale.without_overflow(norm)
            self.loss_scale.update((~finite).float())
        self.ranks.shares.map(call, self._refreshes)
        return losses


def _twin(model: Transformer) -> Transformer:
    """A model with the same weights, which gets gradients of its own."""
    shared: dict[int, Any] = {
        id(weight): nn.Parameter(weight.detach()) for weight in model.parameters()
    }
    return copy.deepcopy(model, shared)
