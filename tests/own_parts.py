"""Parts of an experimenter's own, as tests put them in the place of the package's."""

from functools import partial

import torch
from torch import Tensor

from glassformer.config import ModelConfig
from glassformer.model.attention import MultiHeadAttention, fused_attention, masked_softmax
from glassformer.model.forms import ModelParts
from glassformer.model.transformer import Transformer


def colder(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Another softmax: of the scores times 3."""
    weights = masked_softmax(3 * query @ key.mT / query.size(-1) ** 0.5, mask)
    return weights @ value, weights


def warmer(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Another softmax: of the scores by 3."""
    return colder(query / 9, key, value, mask)


def kernel(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """An attention that keeps no weights."""
    return fused_attention(2 * query, key, value, mask)


class Rotary(MultiHeadAttention):
    """Su et al. 2021: queries and keys are turned by their positions."""

    def attend(self, query, keys, values, mask=None):
        queries = self.split(self.query(query))
        turned = rotated(queries, keys.size(-2) - queries.size(-2)), rotated(keys)
        return self.output(self.merge(self.attention(*turned, values, mask)[0]))


def rotated(x: Tensor, start: int = 0) -> Tensor:
    """The halves of each head, turned by the angle of the position."""
    half = x.size(-1) // 2
    places = torch.arange(start, start + x.size(-2), dtype=x.dtype)
    angles = places[:, None] * 10_000 ** (-torch.arange(half, dtype=x.dtype) / half)
    first, second = x[..., :half], x[..., half : 2 * half]
    sin, cos = angles.sin(), angles.cos()
    turned = (first * cos - second * sin, first * sin + second * cos, x[..., 2 * half :])
    return torch.cat(turned, -1)


def rotary(config: ModelConfig, parts: ModelParts) -> Transformer:
    """The model with rotary positions in each self-attention."""
    model = Transformer(config, parts)
    new = partial(Rotary, config.d_model, config.num_heads, attention=parts.attention)
    for block in [*model.encoder.blocks, *model.decoder.blocks]:
        block.self_attention.sublayer = new()
    return model
