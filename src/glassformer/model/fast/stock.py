"""Checks that all modules of a model are the package's, for fast versions and exports."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

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
from glassformer.model.forms import NormedPositions
from glassformer.model.positions import PositionalEncoding
from glassformer.model.transformer import Transformer

__all__ = ["Stamp", "check_stock"]

_STOCK = {
    *(Transformer, Encoder, Decoder, EncoderBlock, DecoderBlock, ResidualBlock),
    *(MultiHeadAttention, FeedForward, ScaledEmbedding, PositionalEncoding, NormedPositions),
    *(nn.Linear, nn.LayerNorm, nn.ModuleList, nn.Identity, nn.Dropout, ByteDropout),
}
_FUNCTIONS = (scaled_dot_product_attention, fused_attention, *ACTIVATIONS.values())
# The attributes that a fast version copies or replaces, beside the weights.
_SETTINGS = ("activation", "attention", "eps", "norm_first", "num_heads")


def check_stock(model: nn.Module, user: str, remedy: str = "") -> None:
    """Raise TypeError for a module that is not the package's, or that a hook or capture watches.

    The message says that ``user`` does not know the module, and ends in ``remedy``.
    """
    for name, module in model.named_modules():
        attributes = vars(module).items()
        foreign = [n for n, value in attributes if callable(value) and value not in _FUNCTIONS]
        if type(module) not in _STOCK:
            reason = f"is a {type(module).__module__}.{type(module).__qualname__}"
        elif "add" in foreign:
            reason = "is in a capture or has its own add"
        elif foreign:
            reason = f"has its own {foreign[0]}"
        elif module._forward_hooks or module._forward_pre_hooks:
            reason = "has a hook"
        else:
            continue
        raise TypeError(f"{name or 'the model'} {reason}, which {user} does not know{remedy}")


class Stamp:
    """A model's weights, settings and modules at one time; tells whether they have changed."""

    steps = 0  # of all optimisers: fused ones change weights without a new version

    def __init__(self, model: nn.Module) -> None:
        self._value = _state(model)
        # While these live, no new weight gets an old weight's address.
        self._alive: Sequence[Tensor] = [weight.detach() for weight in model.parameters()]

    def holds(self, model: nn.Module) -> bool:
        """Whether no weight, setting, module or hook of the model has changed since."""
        return self._value == _state(model)


def _count(*_: object) -> None:
    Stamp.steps += 1


register_optimizer_step_post_hook(_count)


def _state(model: nn.Module) -> list[object]:
    state: list[object] = [Stamp.steps]
    for module in model.modules():
        attributes = vars(module)
        hooks = len(module._forward_hooks) + len(module._forward_pre_hooks)
        settings = map(attributes.get, _SETTINGS)
        state += (type(module), len(attributes), hooks, *settings)  # a method adds an attribute
        for weight in module._parameters.values():
            if weight is not None:
                version = 0 if weight.is_inference() else weight._version
                state += (weight.data_ptr(), version)
    return state
