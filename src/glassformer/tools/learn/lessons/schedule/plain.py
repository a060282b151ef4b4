"""One update of Adam by hand; training runs torch's Adam."""

from jaxtyping import Float
from torch import Tensor

AdamState = tuple[int, Float[Tensor, "*axes"], Float[Tensor, "*axes"]]
"""The number of updates so far, the mean of the gradients, the mean of their squares."""


def adam_step(
    weight: Float[Tensor, "*axes"],
    gradient: Float[Tensor, "*axes"],
    *,
    state: AdamState,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.98),
    epsilon: float = 1e-9,
) -> tuple[Float[Tensor, "*axes"], AdamState]:
    """The new weight and the new state, as new tensors (Kingma and Ba 2015, algorithm 1)."""
    updates, mean, square = state
    updates = updates + 1
    mean = betas[0] * mean + (1 - betas[0]) * gradient
    square = betas[1] * square + (1 - betas[1]) * gradient**2
    unbiased_mean = mean / (1 - betas[0] ** updates)
    unbiased_square = square / (1 - betas[1] ** updates)
    weight = weight - rate * unbiased_mean / (unbiased_square.sqrt() + epsilon)
    return weight, (updates, mean, square)
