"""Whether a model consists of the package's own modules, which quick forms and exports know."""

from torch import Tensor, nn

from glassformer.model.attention import (
    MultiHeadAttention,
    fused_attention,
    scaled_dot_product_attention,
)
from glassformer.model.blocks import ACTIVATIONS, FeedForward, ResidualBlock
from glassformer.model.decoder import Decoder, DecoderBlock
from glassformer.model.embeddings import ScaledEmbedding
from glassformer.model.encoder import Encoder, EncoderBlock
from glassformer.model.fast.dropout import ByteDropout
from glassformer.model.positions import PositionalEncoding
from glassformer.model.transformer import Transformer
from glassformer.model.variants import NormedPositions

__all__ = ["check_stock", "stamp"]

_STOCK = {
    *(Transformer, Encoder, Decoder, EncoderBlock, DecoderBlock, ResidualBlock),
    *(MultiHeadAttention, FeedForward, ScaledEmbedding, PositionalEncoding, NormedPositions),
    *(nn.Linear, nn.LayerNorm, nn.ModuleList, nn.Identity, nn.Dropout, ByteDropout),
}
_FUNCTIONS = {scaled_dot_product_attention, fused_attention, *ACTIVATIONS.values()}


def check_stock(model: Transformer, user: str) -> None:
    """Raise TypeError for a module that is not the package's, or that a hook or capture watches.

    ``user`` is the form that does not know it, for the message.
    """
    for name, module in model.named_modules():
        own = [key for key, value in vars(module).items() if callable(value)]
        own = [key for key in own if vars(module)[key] not in _FUNCTIONS]
        if type(module) not in _STOCK:
            reason = f"is a {type(module).__module__}.{type(module).__qualname__}"
        elif own:
            reason = f"has a {own[0]} of its own"
        elif module._forward_hooks or module._forward_pre_hooks:
            reason = "has a hook"
        else:
            continue
        raise TypeError(f"{name or 'the model'} {reason}, which {user} does not know")


def stamp(model: nn.Module) -> list[tuple[int, int]]:
    """It changes if a weight is replaced, or changed in place."""
    return [(weight.data_ptr(), _version(weight)) for weight in model.parameters()]


def _version(weight: Tensor) -> int:
    return 0 if weight.is_inference() else weight._version
