"""Positional encoding (section 3.5): without it, attention ignores the order of the tokens."""

import math
from collections.abc import Callable
from typing import TypedDict, Unpack, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config import Frequencies, Layout, PositionKind, check_arguments, check_width
from glassformer.support.errors import check_choice
from glassformer.support.other_names import check_keywords

__all__ = ["PositionalEncoding", "TableOptions", "sinusoidal_positions"]


class TableOptions(TypedDict, total=False):
    """The options of :func:`sinusoidal_positions` that :class:`PositionalEncoding` takes."""

    layout: Layout
    frequencies: Frequencies
    offset: int


def sinusoidal_positions(
    length: int,
    d_model: int,
    *,
    layout: Layout = "interleaved",
    frequencies: Frequencies = "paper",
    offset: int = 0,
) -> Float[Tensor, "length d_model"]:
    r"""The table whose row ``p`` has sines and cosines of :math:`(p + \mathrm{offset})\,\omega_i`.

    ``frequencies="paper"`` means :math:`\omega_i = 10000^{-2i/d_{model}}` (section 3.5).
    ``"tensor2tensor"`` (the authors' code) means :math:`\omega_i = 10000^{-i/(d_{model}/2-1)}`,
    whose last frequency is :math:`1/10000`. ``layout="interleaved"`` (the paper) puts sines in even
    columns and cosines in odd ones; ``"halves"`` puts all sines first (tensor2tensor, Marian).

    >>> sinusoidal_positions(2, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    check_arguments("sinusoidal_positions", length=length, d_model=d_model, offset=offset)
    check_width(d_model)
    check_choice("layout", layout, get_args(Layout))
    check_choice("frequencies", frequencies, get_args(Frequencies))
    half = d_model // 2
    steps = half if frequencies == "paper" else max(half - 1, 1)
    # In float64: at position 5,000 a float32 angle is off by 3e-4. On the CPU, even if a model is
    # built on the meta device: no file of weights holds the table.
    numbers = torch.arange(max(half, length), dtype=torch.float64, device="cpu")
    pos, i = numbers[:length], numbers[:half]  # the paper's symbols
    rates = torch.exp(-math.log(10_000.0) * i / steps)
    angles = (offset + pos)[:, None] * rates
    pair = (angles.sin(), angles.cos())
    table = torch.stack(pair, -1).flatten(1) if layout == "interleaved" else torch.cat(pair, -1)
    return table.float()


class PositionalEncoding(nn.Module):
    """Adds to each embedding the vector of its position, then applies dropout (section 5.4).

    ``kind="sinusoidal"`` has no parameters; ``"learned"`` has a table of ``max_length`` rows
    (Gehring et al. 2017). BART begins at row 2, so ``offset`` is 2. A sequence longer than
    ``max_length`` is an error. ``start`` is the first token's position in step-by-step decoding.

    >>> PositionalEncoding(4)(torch.zeros(1, 2, 4))[0, 0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

    table: Tensor

    def __init__(
        self,
        d_model: int,
        dropout: float = 0.0,
        *,
        kind: PositionKind = "sinusoidal",
        max_length: int = 1024,
        new_dropout: Callable[[float], nn.Module] = nn.Dropout,
        **table: Unpack[TableOptions],
    ) -> None:
        super().__init__()
        check_choice("kind", kind, get_args(PositionKind))
        known = (*TableOptions.__annotations__, "dropout", "kind", "max_length")
        check_keywords("PositionalEncoding", table, known)
        offset = table.get("offset", 0)
        rest = {"dropout": dropout, "new_dropout": new_dropout, "offset": offset}
        check_arguments("PositionalEncoding", d_model=d_model, max_length=max_length, **rest)
        self.max_length = max_length
        self.dropout = new_dropout(dropout)
        if kind == "learned":
            self.offset = offset
            rows = torch.empty(max_length + self.offset, d_model)
            self.table = nn.Parameter(rows if rows.is_meta else rows.normal_().mul_(d_model**-0.5))
        else:
            self.offset = 0  # row 0 of the table has the offset in it
            numbers = sinusoidal_positions(max_length, d_model, **table)
            self.register_buffer("table", numbers, persistent=False)

    def forward(
        self, embedded: Float[Tensor, "batch len d_model"], *, start: int = 0
    ) -> Float[Tensor, "batch len d_model"]:
        end = start + embedded.size(1)
        if end > self.max_length:
            raise ValueError(
                f"a sequence of {end} tokens is longer than the {self.max_length} positions"
                f" by {end - self.max_length}"
            )
        rows = self.table[start + self.offset : end + self.offset]
        return self.dropout(embedded + rows.to(embedded))
