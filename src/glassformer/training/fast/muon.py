"""Muon, which steps equally far along all directions of a matrix's momentum.

Departure from the paper: Adam scales each element of a matrix alone. Muon takes the gradient's
momentum as a matrix, :math:`M = U S V^T`, and steps along :math:`U V^T`. So rare directions learn
as fast as frequent ones. Vectors, embeddings and the output matrix keep the paper's Adam.

Sources: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks" (the
iteration and its constants); Liu et al. 2025, arXiv 2502.16982, section 2.2 (the length of a step,
which lets Adam's learning rates fit). ``torch.optim.Muon`` always multiplies in bfloat16, slowly on
a CPU without matrix units, and takes one matrix at a time.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.training.parallel.ranks import ALONE, Ranks

__all__ = ["Muon", "orthogonal"]

_MOMENTUM = 0.95
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 3  # the source has 5
_STEP = 0.2  # root mean square of the elements' change at rate 1, about Adam's


def orthogonal(matrices: Float[Tensor, "count rows cols"]) -> Float[Tensor, "count rows cols"]:
    r"""Nearly :math:`U V^T` for each matrix :math:`U S V^T`, with all singular values near 1.

    Newton-Schulz iterates :math:`X \leftarrow aX + b(XX^T)X + c(XX^T)^2X`, by matrix products
    alone. Newton-Schulz brings all but tiny singular values to between 0.6 and 1.3.

    >>> orthogonal(torch.diag(torch.tensor([3.0, -2.0]))[None]).sign()
    tensor([[[ 1.,  0.],
             [ 0., -1.]]])
    """
    if matrices.size(1) > matrices.size(2):  # the smaller side is squared
        return orthogonal(matrices.mT).mT
    x = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-20)
    for _ in range(_ITERATIONS):
        square = x @ x.mT
        factor = torch.baddbmm(square, square, square, beta=_B, alpha=_C)
        x = torch.baddbmm(x, factor, x, beta=_A)
    return x


class Muon(torch.optim.Optimizer):
    """Muon for ``matrices``; ``others`` is the optimiser of all other weights.

    If ``others`` is fused, Muon too divides the gradients by ``grad_scale``, and changes nothing if
    ``found_inf`` is 1. Muon does not wait for the device. ``products`` is the number type of
    Muon's matrix products, which ``ranks`` share. Muon's state holds the ``momentum`` of each
    matrix.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        others: torch.optim.Optimizer,
        *,
        products: torch.dtype = torch.float32,
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__(matrices, {})
        self.matrices: list[nn.Parameter] = self.param_groups[0]["params"]
        self.param_groups += others.param_groups
        self.state.update(others.state)
        self.others: Any = others
        self.others.state = self.state  # one state for the checkpoint
        self.products, self.ranks = products, ranks
        self._step_supports_amp_scaling = getattr(others, "_step_supports_amp_scaling", False)
        self.grad_scale: Tensor | None = None
        self.found_inf: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Change all weights; ``lr`` of a group is the group's learning rate."""
        if self._step_supports_amp_scaling:
            self.others.grad_scale, self.others.found_inf = self.grad_scale, self.found_inf
        loss = self.others.step(closure)
        self.ranks.shares.map(self._change, self.ranks.shares.places())
        return loss

    @torch.no_grad()  # each thread has a mode of its own
    def _change(self, place: slice) -> None:
        """Change the matrices at ``place``, by few calls that each change all of them."""
        shapes: dict[torch.Size, list[nn.Parameter]] = {}
        for matrix in self.matrices[place]:
            shapes.setdefault(matrix.shape, []).append(matrix)
        if not shapes:
            return
        matrices: list[Tensor] = list(chain(*shapes.values()))
        sizes = [len(group) * shape.numel() for shape, group in shapes.items()]
        parts = self._ahead(matrices).split(sizes)
        stacks = [part.view(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]
        changes = self._orthogonal(stacks)
        rate = self.param_groups[0]["lr"] * _STEP
        torch._foreach_mul_(changes, [rate * max(shape) ** 0.5 for shape in shapes])
        if self.found_inf is not None:
            torch._foreach_mul_(changes, 1 - self.found_inf)
        torch._foreach_sub_(matrices, list(chain(*changes)))

    def _ahead(self, matrices: list[Tensor]) -> Float[Tensor, " numbers"]:
        """Update the momentum of the matrices; return Nesterov's momentum, end to end."""
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        gradient, momentum = map(nn.utils.parameters_to_vector, (gradients, momenta))
        if self.grad_scale is not None:
            gradient /= self.grad_scale
        if self.found_inf is not None:  # the momentum as gradient does not change the momentum
            torch.where(self.found_inf.bool(), momentum, gradient, out=gradient)
        momentum.lerp_(gradient, 1 - _MOMENTUM)
        updated = momentum.split([matrix.numel() for matrix in matrices])
        torch._foreach_copy_(
            momenta, [new.view_as(old) for new, old in zip(updated, momenta, strict=True)]
        )
        return gradient.lerp_(momentum, _MOMENTUM)

    def _orthogonal(self, stacks: list[Tensor]) -> list[Tensor]:
        """Orthogonalise all matrices; each rank computes a share, and a sum joins the shares."""
        if self.ranks.size == 1:
            return [orthogonal(stack.to(self.products)).to(stack.dtype) for stack in stacks]
        share = self.ranks.share()
        results = [torch.zeros_like(stack) for stack in stacks]
        for stack, result in zip(stacks, results, strict=True):
            if len(stack[share]):
                result[share] = orthogonal(stack[share].to(self.products)).to(result.dtype)
        return self.ranks.sum(results)
