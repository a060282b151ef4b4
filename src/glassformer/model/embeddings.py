r"""Embeddings (section 3.4): a vector for each token, times :math:`\sqrt{d_{model}}`."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.config import check_arguments
from glassformer.support.errors import check_kind

__all__ = ["ScaledEmbedding", "check_ids"]


def check_ids(tokens: Tensor, vocab_size: int, *, what: str = "tokens") -> None:
    """Raise ValueError for ids outside the vocabulary; the error names the first wrong id.

    >>> check_ids(torch.tensor([1, 9]), 5)
    Traceback (most recent call last):
    ValueError: tokens: id 9 is outside the vocabulary of 5 (ids 0 to 4)
    """
    if tokens.is_floating_point() or tokens.dtype == torch.bool:
        raise TypeError(f"{what}: ids must be integers, got {tokens.dtype}")
    wrong = tokens[(tokens < 0) | (tokens >= vocab_size)]
    if wrong.numel():
        raise ValueError(
            f"{what}: id {int(wrong[0])} is outside the vocabulary of {vocab_size}"
            f" (ids 0 to {vocab_size - 1})"
        )


class ScaledEmbedding(nn.Module):
    r"""A row of the table for each token, times :math:`\sqrt{d_{model}}`.

    Training begins with numbers from :math:`N(0, 1/d_{model})`, which suit an output matrix tied to
    the table too. The factor brings the vectors to the size of the positional encoding.
    ``scale=False`` leaves the factor out (BART). On a CPU an id outside the vocabulary is an error.

    >>> ScaledEmbedding(10, 4)(torch.tensor([[3, 9]])).shape
    torch.Size([1, 2, 4])
    """

    def __init__(self, vocab_size: int, d_model: int, *, scale: bool = True) -> None:
        super().__init__()
        check_arguments("ScaledEmbedding", vocab_size=vocab_size, d_model=d_model)
        check_kind(scale, bool, wants="ScaledEmbedding takes True or False as scale")
        rows = torch.empty(vocab_size, d_model)  # on the meta device, torch would load its compiler
        self.weight = nn.Parameter(rows if rows.is_meta else rows.normal_().mul_(d_model**-0.5))
        self.factor = math.sqrt(d_model) if scale else 1.0

    def forward(self, tokens: Int[Tensor, "batch len"]) -> Float[Tensor, "batch len d_model"]:
        try:
            return F.embedding(tokens, self.weight) * self.factor
        except (IndexError, RuntimeError):  # torch's own words name no id
            check_ids(tokens, self.weight.size(0))
            raise
