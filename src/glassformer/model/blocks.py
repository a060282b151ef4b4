"""What encoder and decoder blocks are made of: feed-forward network and residual block."""

from collections.abc import Callable
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.model.dropout import Dropout

__all__ = ["ACTIVATIONS", "Activation", "FeedForward", "Norm", "ResidualBlock"]

Activation = Literal["relu", "gelu", "swish"]
Norm = Literal["post", "pre"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,  # the paper's
    "gelu": F.gelu,  # Hendrycks and Gimpel 2016; BART
    "swish": F.silu,  # Ramachandran et al. 2017; Marian
}


class FeedForward(nn.Module):
    r"""Section 3.3, equation 2: :math:`\max(0, xW_1 + b_1)W_2 + b_2`, the same at each position.

    ``dropout`` applies between the two layers; the paper has none there.

    >>> import torch
    >>> FeedForward(8, 32)(torch.zeros(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    """

    def __init__(
        self, d_model: int, d_ff: int, *, dropout: float = 0.0, activation: Activation = "relu"
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation {activation!r} is none of {', '.join(ACTIVATIONS)}")
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)
        self.activation = ACTIVATIONS[activation]

    def forward(
        self, x: Float[Tensor, "*batch len d_model"]
    ) -> Float[Tensor, "*batch len d_model"]:
        return self.outer(self.dropout(self.activation(self.inner(x))))


class ResidualBlock(nn.Module):
    r"""A sublayer with its residual connection and its own LayerNorm (section 3.1).

    ``norm="post"``, the paper's: :math:`\mathrm{LayerNorm}(x + \mathrm{Dropout}(f(x)))`.
    ``norm="pre"`` (Departure from the paper: it trains without warm-up also when deep, Xiong et
    al. 2020): :math:`x + \mathrm{Dropout}(f(\mathrm{LayerNorm}(x)))`.

    ``read`` says how the sublayer reads a stream where plain ``sublayer(x)`` will not do, as in
    ``block(x, lambda attention, x: attention(x, x, x, mask))``.

    >>> import torch
    >>> block = ResidualBlock(FeedForward(8, 32), 8, dropout=0.1, norm="post")
    >>> block(torch.zeros(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    """

    sublayer: Any  # a module of any call; `read` knows which

    def __init__(
        self,
        sublayer: nn.Module,
        d_model: int,
        *,
        dropout: float = 0.0,
        norm: Norm = "post",
        norm_epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        if norm not in ("post", "pre"):
            raise ValueError(f"norm must be 'post' or 'pre', got {norm!r}")
        self.sublayer = sublayer
        self.norm = nn.LayerNorm(d_model, eps=norm_epsilon)
        self.dropout = Dropout(dropout)
        self.norm_first = norm == "pre"

    def forward(
        self,
        x: Float[Tensor, "batch len d_model"],
        read: Callable[[Any, Tensor], Tensor] = lambda sublayer, x: sublayer(x),
    ) -> Float[Tensor, "batch len d_model"]:
        if self.norm_first:
            return x + self.dropout(read(self.sublayer, self.norm(x)))
        return self.norm(x + self.dropout(read(self.sublayer, x)))
