"""Adam with the paper's constants (section 5.3), and one update of the weights."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import torch
from torch import nn

from glassformer.data.batches import Batch
from glassformer.model.transformer import Transformer
from glassformer.training.loss import projected_cross_entropy

__all__ = ["NotFiniteError", "Update", "adam", "precision_for", "update"]


class NotFiniteError(ArithmeticError):
    """The loss or the gradient is NaN or infinite; the weights were not touched."""


@dataclass(frozen=True)
class Update:
    """What one update came to: means in nats a target token, and what was read."""

    loss: float
    plain_loss: float
    gradient_norm: float
    tokens: int


def adam(model: nn.Module) -> torch.optim.Adam:
    """Adam with beta 0.9 and 0.98, epsilon 1e-9; the rate is set anew before each update."""
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


def update(
    model: Transformer,
    optimiser: torch.optim.Optimizer,
    batches: Sequence[Batch],
    *,
    rate: float,
    smoothing: float,
    clip: float,
    precision: Literal["float32", "bf16"] = "float32",
) -> Update:
    """One step of the optimiser on the gradient of all ``batches`` together.

    Each batch adds its sum over target tokens, divided by the count of all of them: N small
    batches give the gradient of one large one, whatever their sizes.
    """
    target_tokens = sum(batch.target_tokens for batch in batches)
    device = next(model.parameters()).device
    totals = torch.zeros(2, device=device)
    optimiser.zero_grad(set_to_none=True)
    for batch in batches:
        on_device = batch.to(device)
        with autocast(device, precision):
            memory = model.encode(on_device.source)
            states = model.decode(on_device.target, memory)
            real = on_device.labels != model.config.pad_id
            loss, plain = projected_cross_entropy(
                states[real],
                model.output_weight,
                model.output_bias,
                on_device.labels[real],
                smoothing=smoothing,
            )
        (loss / target_tokens).backward()
        totals += torch.stack((loss.detach(), plain))
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip if clip > 0 else float("inf"))
    loss_value, plain_value = (totals / target_tokens).tolist()
    if not torch.isfinite(norm + loss_value):
        raise NotFiniteError(f"loss {loss_value}, gradient norm {norm.item()}")
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.step()
    return Update(loss_value, plain_value, norm.item(), sum(batch.tokens for batch in batches))


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Matrix products in bfloat16 where ``precision`` is "bf16"; weights stay float32."""
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def precision_for(device: torch.device) -> Literal["float32", "bf16"]:
    """bf16 where this machine really multiplies faster in it, by measuring; else float32.

    A CPU without matrix units takes tens of times longer in bf16 than in float32. The product
    is tiny at first so that such a CPU says no in a moment.
    """
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "float32"
    for size in (64, 512):
        times = {}
        for dtype in (torch.float32, torch.bfloat16):
            matrix = torch.ones(size, size, dtype=dtype)
            matrix @ matrix
            begin = perf_counter()
            for _ in range(3):
                matrix @ matrix
            times[dtype] = perf_counter() - begin
        if times[torch.bfloat16] * (1.5 if size == 512 else 0.5) > times[torch.float32]:
            return "float32"
    return "bf16"
