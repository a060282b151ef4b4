# %% [markdown]
# # Positions
#
# > "Since our model contains no recurrence and no convolution, in order for
# > the model to make use of the order of the sequence, we must inject some
# > information about the relative or absolute position of the tokens in the
# > sequence." (section 3.5)
#
# Attention reads a set. Shuffle the seven words of a source: without
# positions, an untrained encoder of the paper's size gives each word the
# vector that it had before, up to rounding. With positions, the vectors move
# by a tenth to a fifth of their length, on the mean.
#
# Each position p gets a vector of d_model numbers. Column pair i holds a sine
# and a cosine of one frequency, from 1 down to nearly 1/10000:
#
#     PE(p, 2i)     = sin(p / 10000^(2i / d_model))
#     PE(p, 2i + 1) = cos(p / 10000^(2i / d_model)), i = 0, 1, …, d_model/2 - 1
#
# That is the layout "interleaved", the paper's. The layout "halves" has the
# same numbers in other columns: all sines first, then all cosines. (So do the
# authors in their own code, with the exponent i/(d_model/2 - 1): at position
# 50 the numbers of d_model 512 differ by up to 0.07.) A model that is trained
# with one layout, and read with the other, translates badly, and no error says
# so.
#
# Decoding gives one token at a time: the third token is at position 2, though
# it comes alone.

# %%
import torch
from torch import Tensor, nn


def sinusoidal_positions(
    length: int, d_model: int, *, layout: str = "interleaved", offset: int = 0
) -> Tensor:
    """The vectors of the positions offset, offset + 1, …, offset + length - 1.

    -> table (length, d_model); layout "interleaved" or "halves"

    Row 1 with d_model 4: interleaved [sin 1, cos 1, sin 0.01, cos 0.01],
    halves [sin 1, sin 0.01, cos 1, cos 0.01].

    Compute the angles in float64: at large positions a float32 angle is off.
    An odd d_model is an error: sines and cosines come in pairs.
    """
    # Six lines: the odd width; rates; angles; sines and cosines; the layout.
    raise NotImplementedError


class PositionalEncoding(nn.Module):
    """Adds each position's vector, then applies dropout (section 5.4)."""

    table: Tensor

    def __init__(
        self, d_model: int, *, dropout: float = 0.0, max_length: int = 1024
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        table = sinusoidal_positions(max_length, d_model).float()
        # A buffer moves with the model, and is not trained.
        self.register_buffer("table", table, persistent=False)

    def forward(self, embedded: Tensor, *, start: int = 0) -> Tensor:
        """The dropout of embedding plus position; start: the first position.

        embedded (batch, len, d_model) -> (batch, len, d_model)

        An embedding [0, 0, 0, 0] at start 1, without dropout:
        [0.84, 0.54, 0.01, 1.00].
        """
        # Two lines: the table's rows for these tokens; the sum with dropout.
        raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Multiply row p with row p + 3 (a dot product), for several p. What do you
#    notice?
# 2. How do you turn an interleaved table into one of halves, without computing
#    it again?
