"""The encoder (section 3.1, figure 1 left): a stack of blocks that reads the source."""

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.model.attention import MultiHeadAttention
from glassformer.model.blocks import Activation, FeedForward, Norm, ResidualBlock, S

__all__ = ["Encoder", "EncoderBlock"]


class EncoderBlock(nn.Module):
    """Self-attention, then the feed-forward network, each in its residual block.

    ``dropout`` is the paper's, after each sublayer. Later models add ``attention_dropout`` on the
    attention weights and ``activation_dropout`` inside the feed-forward network.

    >>> import torch
    >>> EncoderBlock(8, 2, 32)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: Activation = "relu",
        norm: Norm = "post",
        norm_epsilon: float = 1e-5,
    ) -> None:
        super().__init__()

        def residual(sublayer: S) -> ResidualBlock[S]:
            return ResidualBlock(
                sublayer, d_model, dropout=dropout, norm=norm, norm_epsilon=norm_epsilon
            )

        self.self_attention = residual(
            MultiHeadAttention(d_model, num_heads, dropout=attention_dropout)
        )
        self.feed_forward = residual(
            FeedForward(d_model, d_ff, dropout=activation_dropout, activation=activation)
        )

    def forward(
        self, x: Float[Tensor, "batch src_len d_model"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch src_len d_model"]:
        y = self.self_attention.before(x)
        x = self.self_attention.add(x, self.self_attention.sublayer(y, y, y, mask))
        return self.feed_forward(x)


class Encoder(nn.Module):
    """The stack: one block after another. Pre-norm blocks need one more LayerNorm at the end.

    >>> import torch
    >>> Encoder([EncoderBlock(8, 2, 32) for _ in range(2)])(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, blocks: list[EncoderBlock], *, final_norm: nn.Module | None = None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.norm = final_norm or nn.Identity()

    def forward(
        self, x: Float[Tensor, "batch src_len d_model"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch src_len d_model"]:
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)
