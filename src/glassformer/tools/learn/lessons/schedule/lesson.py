# %% [markdown]
# # Warm-up, and one update of Adam
#
# > "We used the Adam optimizer with β₁ = 0.9, β₂ = 0.98 and ϵ = 10⁻⁹. We
# > varied the learning rate over the course of training" (section 5.3)
#
#     rate = d_model^−0.5 · min(update^−0.5, update · warmup^−1.5) (equation 3)
#
# The first term falls with the root of the update. The second rises in a
# straight line. They meet at update = warmup: before it the line is smaller,
# after it the root.
#
# Why warm up? Adam divides each gradient by its usual size. After a few
# updates it hardly knows that size, and the layers change all at once. Small
# first steps let sizes and layers settle.
#
# Adam keeps two running means for each weight: of the gradient g, and of its
# square. Both begin at zero, so they are too small at first: after t updates
# the weights in a mean sum to 1 − βᵗ. Adam divides by that. The size of a
# gradient cancels out: a weight moves by about one rate.
#
#     mean   = β₁ · mean + (1 − β₁) · g
#     square = β₂ · square + (1 − β₂) · g²
#     weight = weight − rate · mean / (1 − β₁ᵗ) / (√(square / (1 − β₂ᵗ)) + ϵ)
#
# Updates count from 1.

# %%
import torch
from torch import Tensor


def noam_schedule(
    update: float, *, d_model: int, warmup: int = 4000, factor: float = 1.0
) -> float:
    """Equation 3, times factor: the learning rate of an update.

    d_model 4, warmup 100: update 1 has the rate 0.5 · 0.001 = 0.0005, update
    100 the highest, 0.5 · 0.1 = 0.05, and update 400 has 0.5 · 0.05 = 0.025.
    """
    # One line.
    raise NotImplementedError


AdamState = tuple[int, Tensor, Tensor]  # number of updates, mean, square


def adam_step(
    weight: Tensor,
    gradient: Tensor,
    *,
    state: AdamState,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.98),
    epsilon: float = 1e-9,
) -> tuple[Tensor, AdamState]:
    """One update of Adam: the new weight and the new state, as new tensors.

    weight, gradient, mean and square have one shape; the first state is
    (0, zeros, zeros).

    weight [1], gradient [4], rate 0.1, first update: mean [0.4], square
    [0.32]. Divided by 1 − 0.9 and 1 − 0.98 they are [4] and [16]; the step is
    0.1 · 4 / 4, the new weight [0.9].
    """
    # Seven lines: count; both means; both without bias; the weight; return.
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Multiply all gradients by 1000, from the first update on. How do the
#    weights change?
# 2. Halve the warm-up of the base model from 4000 to 2000. How does the
#    highest rate change?
