"""The weights that a model's cross-attention computes in the model's own ``decode``."""

import copy
from collections.abc import Sequence
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.model.attention import NoWeightsError, observe
from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError, counted

__all__ = ["UnalignedError", "cross_weights"]

M = TypeVar("M", bound=nn.Module)


class UnalignedError(InputError):
    """The model has no cross-attention weights that could align words."""


@torch.inference_mode()
def cross_weights(
    model: Transformer,
    source: Int[Tensor, "batch src_len"],
    target: Int[Tensor, "batch tgt_len"],
    layers: Sequence[int],
) -> list[Float[Tensor, "batch heads tgt_len src_len"]]:
    """The cross-attention of some layers while the model's own ``decode`` reads ``target``.

    The function observes a copy of the model, because other threads may run the model meanwhile.

    A model without one cross-attention in each decoder block raises UnalignedError. An attention
    that returns no weights also raises UnalignedError.
    """
    config, calls = model.config, list[tuple[nn.Module, Tensor]]()
    observed = _observed(model, calls)
    memory, of_two = model.encode(source), model.encode(source.new_full((1, 2), config.eos_id))
    try:
        # With one target and two source tokens, self-attention has one key, cross-attention two.
        observed.decode(target.new_full((1, 1), config.bos_id), of_two)
        over_memory = {module for module, weights in calls if weights.size(-1) == 2}
        calls.clear()
        observed.decode(target, memory)
    except NoWeightsError as error:
        raise UnalignedError(str(error)) from error
    maps = [weights for module, weights in calls if module in over_memory]
    if [weights.size(1) for weights in maps] != [config.num_heads] * config.num_decoder_layers:
        raise UnalignedError(
            f"{type(model).__name__} has no cross-attention of"
            f" {counted(config.num_heads, 'head')} in each decoder block, which aligns words"
        )
    return [maps[layer] for layer in layers]


def _observed(module: M, calls: list[tuple[nn.Module, Tensor]]) -> M:
    """A copy that shares the weights; each call of the copy's attentions comes into ``calls``."""

    def keep(*run: Tensor) -> None:
        calls.append((copied, run[-1]))

    copied = copy.copy(module)
    copied._modules = {
        name: None if child is None else _observed(child, calls)
        for name, child in module._modules.items()
    }
    attention = vars(module).get("attention")  # a function: vars() holds no module
    if callable(attention):
        vars(copied)["attention"] = observe(attention, keep)
    return copied
