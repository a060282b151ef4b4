"""The parts of every block: the feed-forward network, and a sublayer with its sum and norm."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, get_args

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.config import Activation, Norm, check_arguments
from glassformer.support.errors import check_choice

__all__ = ["ACTIVATIONS", "FeedForward", "ResidualBlock"]

S = TypeVar("S", bound=nn.Module)

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,  # the paper's
    "gelu": F.gelu,  # Hendrycks and Gimpel 2016; BART
    "swish": F.silu,  # Ramachandran et al. 2017; Marian
}


class FeedForward(nn.Module):
    r"""Section 3.3, equation 2: :math:`\max(0, xW_1 + b_1)W_2 + b_2` at each position.

    ``dropout`` applies between the two layers; the paper has no dropout between the layers.

    >>> import torch
    >>> FeedForward(8, 32)(torch.zeros(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        activation: Activation = "relu",
        new_dropout: Callable[[float], nn.Module] = nn.Dropout,
    ) -> None:
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        rest = {"dropout": dropout, "new_dropout": new_dropout}
        check_arguments("FeedForward", d_model=d_model, d_ff=d_ff, **rest)
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = new_dropout(dropout)
        self.activation = ACTIVATIONS[activation]

    def forward(
        self, x: Float[Tensor, "*batch len d_model"]
    ) -> Float[Tensor, "*batch len d_model"]:
        return self.outer(self.dropout(self.activation(self.inner(x))))


class ResidualBlock(nn.Module, Generic[S]):
    r"""A sublayer with its residual connection and its LayerNorm (section 3.1).

    ``norm="post"``, as in the paper, is :math:`\mathrm{LayerNorm}(x + \mathrm{Dropout}(f(x)))`.
    ``norm="pre"`` is :math:`x + \mathrm{Dropout}(f(\mathrm{LayerNorm}(x)))`. A pre-norm model
    departs from the paper: a deep one trains without warm-up (Xiong et al. 2020).

    ``forward`` hands ``context`` (the memory) and ``options`` (a mask) to the sublayer.

    >>> import torch
    >>> block = ResidualBlock(FeedForward(8, 32), 8, dropout=0.1, norm="post")
    >>> block(torch.zeros(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    """

    sublayer: S

    def __init__(
        self,
        sublayer: S,
        d_model: int,
        *,
        dropout: float = 0.0,
        norm: Norm = "post",
        new_norm: Callable[[int], nn.Module] = nn.LayerNorm,
        new_dropout: Callable[[float], nn.Module] = nn.Dropout,
    ) -> None:
        super().__init__()
        check_choice("norm", norm, get_args(Norm))
        rest = {"dropout": dropout, "new_norm": new_norm, "new_dropout": new_dropout}
        check_arguments("ResidualBlock", sublayer=sublayer, d_model=d_model, **rest)
        self.sublayer = sublayer
        self.norm = new_norm(d_model)
        self.dropout = new_dropout(dropout)
        self.norm_first = norm == "pre"

    def forward(
        self, x: Float[Tensor, "batch len d_model"], *context: Tensor, **options: Any
    ) -> Float[Tensor, "batch len d_model"]:
        return self.add(x, self.sublayer(self.before(x), *context, **options))

    def before(self, x: Float[Tensor, "batch len d_model"]) -> Float[Tensor, "batch len d_model"]:
        """The sublayer's input: ``x``, normalised if ``norm`` is "pre"."""
        return self.norm(x) if self.norm_first else x

    def add(
        self, x: Float[Tensor, "batch len d_model"], output: Float[Tensor, "batch len d_model"]
    ) -> Float[Tensor, "batch len d_model"]:
        """The sum of ``x`` and the sublayer's output, normalised if ``norm`` is "post"."""
        x = x + self.dropout(output)
        return x if self.norm_first else self.norm(x)
