"""The encoder (section 3.1, figure 1 left): a stack of blocks that reads the source."""

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config import Norm, check_arguments
from glassformer.model.forms import PAPER, ModelParts, joined

__all__ = ["Encoder", "EncoderBlock"]


class EncoderBlock(nn.Module):
    """Two residual blocks: self-attention, then the feed-forward network.

    ``dropout`` and ``norm`` go to the residual blocks; ``parts`` make the layers.

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
        norm: Norm = "post",
        parts: ModelParts = PAPER,
    ) -> None:
        super().__init__()
        make = joined(parts, dropout=dropout, norm=norm)
        self.self_attention = make.residual(make.self_attention(d_model, num_heads), d_model)
        self.feed_forward = make.residual(make.feed_forward(d_model, d_ff), d_model)

    def forward(
        self, x: Float[Tensor, "batch src_len d_model"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch src_len d_model"]:
        x = self.self_attention(x, mask=mask)
        return self.feed_forward(x)


class Encoder(nn.Module):
    """The stack of blocks; pre-norm blocks need one more LayerNorm at the end.

    >>> import torch
    >>> Encoder([EncoderBlock(8, 2, 32) for _ in range(2)])(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, blocks: list[EncoderBlock], *, final_norm: nn.Module | None = None) -> None:
        super().__init__()
        check_arguments("Encoder", blocks=blocks, final_norm=final_norm)
        self.blocks = nn.ModuleList(blocks)
        self.norm = final_norm or nn.Identity()

    def forward(
        self, x: Float[Tensor, "batch src_len d_model"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch src_len d_model"]:
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)
