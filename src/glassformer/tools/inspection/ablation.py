"""A model with heads or positions switched off, to see what they do."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from glassformer.model.attention import MultiHeadAttention
from glassformer.model.transformer import Transformer
from glassformer.parts import PLAIN
from glassformer.support.errors import UsageError, check_choice
from glassformer.tools.inspection.capture import twin
from glassformer.tools.inspection.trace.schema import ATTENTION_PATHS, Changes, Head
from glassformer.translator import Translator

T = TypeVar("T")

__all__ = ["ablated", "changed", "reordered"]


def ablated(
    translator: Translator, heads: Iterable[Head] = (), *, positions_off: bool = False
) -> Translator:
    """The translator with heads or positions off, which translates and scores in the plain forms.

    Layers and heads count from 0, as in ``Head("cross", layer=1, head=0)``. The weights are shared,
    and ``translator`` stays as it is. A head that the model does not have raises UsageError.
    """
    model = changed(translator.model, Changes(list(heads), positions_off=positions_off))
    bundle = replace(translator.bundle, model=model)
    return replace(translator, bundle=bundle, engine=None, parts=PLAIN)


def changed(model: Transformer, changes: Changes) -> Transformer:
    """A twin of ``model`` in evaluation mode, with heads and positions off.

    The twin shares the weights, decodes and can be captured like any model; ``model`` stays as it
    is. The caller makes the other changes: source order and causal mask are inputs of a model.
    """
    other = twin(model).eval()
    for head in dict.fromkeys(changes.heads_off):  # a head may be listed twice
        _switch_off(other, head)
    if changes.positions_off:
        for module in other.modules():
            table = getattr(module, "table", None)
            if isinstance(table, Tensor):
                zeros = torch.zeros_like(table)
                module.table = nn.Parameter(zeros) if "table" in module._parameters else zeros
    return other


def reordered(pieces: Sequence[T], order: Sequence[int] | None) -> list[T]:
    """The pieces in another order; UsageError unless ``order`` names each place once.

    >>> reordered([7, 8, 9], [2, 0, 1])
    [9, 7, 8]
    """
    if order is None:
        return list(pieces)
    if sorted(order) != list(range(len(pieces))):
        raise UsageError(
            f"source_order has {len(order)} numbers: expected each of 0 to {len(pieces) - 1} once,"
            f" for the {len(pieces)} pieces of the source"
        )
    return [pieces[place] for place in order]


def _switch_off(model: Transformer, head: Head) -> None:
    """Set one head's output to zero, before the output projection reads it."""
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
    check_choice("heads_off: part", head.part, ATTENTION_PATHS)
    check_choice("heads_off: layer", str(head.layer), map(str, range(layers)))
    check_choice("heads_off: head", str(head.head), map(str, range(config.num_heads)))
    path = ATTENTION_PATHS[head.part].format(head.layer) + ".sublayer"
    # A learner's attention may have another class, and has the projection ``output`` too.
    return cast("MultiHeadAttention", model.get_submodule(path))
