"""A model with a part switched off, to ask what that part was for. The original stays whole."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from glassformer.errors import UsageError
from glassformer.inspection.capture import twin
from glassformer.inspection.trace.schema import Changes, Head
from glassformer.model.attention import MultiHeadAttention
from glassformer.model.positions import PositionalEncoding
from glassformer.model.transformer import Transformer

T = TypeVar("T")

__all__ = ["SUBLAYERS", "changed", "reordered"]

SUBLAYERS = {
    "encoder": "encoder.blocks.{}.self_attention",
    "decoder": "decoder.blocks.{}.self_attention",
    "cross": "decoder.blocks.{}.cross_attention",
}
"""Where each part of the attention is in the model, by layer."""


def changed(model: Transformer, changes: Changes) -> Transformer:
    """A twin of ``model`` on the same weights, in evaluation mode, with heads and positions off.

    It decodes and can be captured like any model. The other two changes are not the model's: the
    order of the source is its input, and the causal mask is given to it.
    """
    other = twin(model).eval()
    for head in dict.fromkeys(changes.heads_off):  # each once, however often it is named
        _switch_off(other, head)
    if changes.positions_off:
        for module in other.modules():
            if isinstance(module, PositionalEncoding):
                zeros = torch.zeros_like(module.table)
                module.table = nn.Parameter(zeros) if "table" in module._parameters else zeros
    return other


def reordered(pieces: Sequence[T], order: Sequence[int] | None) -> list[T]:
    """The pieces in another order; UsageError where ``order`` names not each place once.

    >>> reordered([7, 8, 9], [2, 0, 1])
    [9, 7, 8]
    """
    if order is None:
        return list(pieces)
    if sorted(order) != list(range(len(pieces))):
        raise UsageError(
            f"source_order of {len(order)} places: expected each of 0 to {len(pieces) - 1} once,"
            f" for the {len(pieces)} pieces of the source"
        )
    return [pieces[place] for place in order]


def _switch_off(model: Transformer, head: Head) -> None:
    """Zero what one head hands to the output projection, in any way that the model runs."""
    attention = _attention(model, head)
    width = attention.output.in_features // attention.num_heads
    columns = slice(head.head * width, (head.head + 1) * width)

    def zero(_: nn.Module, arguments: tuple[Tensor, ...]) -> Tensor:
        heads = arguments[0].clone()
        heads[..., columns] = 0.0
        return heads

    attention.output.register_forward_pre_hook(zero)


def _attention(model: Transformer, head: Head) -> MultiHeadAttention:
    config = model.config
    layers = config.num_encoder_layers if head.part == "encoder" else config.num_decoder_layers
    _check("part", head.part, SUBLAYERS)
    _check("layer", head.layer, range(layers))
    _check("head", head.head, range(config.num_heads))
    path = SUBLAYERS[head.part].format(head.layer) + ".sublayer"
    attention = model.get_submodule(path)
    assert isinstance(attention, MultiHeadAttention)
    return attention


def _check(what: str, value: object, known: Iterable[object]) -> None:
    choices = list(known)
    if value not in choices:
        names = ", ".join(map(str, choices))
        raise UsageError(f"heads_off: the {what} {value!r} is none of {names}")
