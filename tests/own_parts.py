"""Parts of an experimenter's own, as tests put them in the place of the package's."""

import threading
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from glassformer.config import ModelConfig
from glassformer.model.attention import MultiHeadAttention, fused_attention, masked_softmax
from glassformer.model.blocks import FeedForward, ResidualBlock
from glassformer.model.cache import BlockState
from glassformer.model.decoder import DecoderBlock
from glassformer.model.forms import ModelParts
from glassformer.model.positions import PositionalEncoding
from glassformer.model.transformer import Transformer
from glassformer.parts import Parts
from glassformer.support.tensors import unfilled


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


def rebuilt(model: Transformer, parts: Parts) -> Transformer:
    """A model of other forms that shares the weights of ``model``."""
    twin = unfilled(lambda: parts.build(model.config))
    twin.load_state_dict(model.state_dict(keep_vars=True), assign=True)
    return twin.train(model.training)


def rotary(config: ModelConfig, parts: ModelParts) -> Transformer:
    """The model with rotary positions in each self-attention."""
    model = Transformer(config, parts)
    new = partial(Rotary, config.d_model, config.num_heads, attention=parts.attention)
    for block in [*model.encoder.blocks, *model.decoder.blocks]:
        block.self_attention.sublayer = new()
    return model


class OwnAttention(MultiHeadAttention):
    def attend(self, query, keys, values, mask=None):
        return super().attend(query, keys, values, mask).tanh()


class OwnNetwork(FeedForward):
    def forward(self, x):
        return super().forward(x).tanh()


class OwnResidual(ResidualBlock):
    def add(self, x, output):
        return super().add(x, 2 * output)


class OwnPositions(PositionalEncoding):
    def forward(self, embedded, *, start=0):
        return 2 * super().forward(embedded, start=start)


class OwnNorm(nn.LayerNorm):
    def forward(self, x):
        return 2 * super().forward(x)


OWN = {
    "attention": colder,
    "norm": OwnNorm,
    "positions": OwnPositions,
    "self_attention": OwnAttention,
    "cross_attention": OwnAttention,
    "feed_forward": OwnNetwork,
    "residual": OwnResidual,
}


class Parallel(nn.Module):
    """GPT-J's block: all sublayers read one LayerNorm of the stream; their outputs are added."""

    def __init__(self, config: ModelConfig, parts: ModelParts):
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model)
        new = partial(MultiHeadAttention, config.d_model, config.num_heads)
        self.attend, self.read = (new(attention=parts.attention) for _ in range(2))
        self.feed = FeedForward(config.d_model, config.d_ff)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        y = self.norm(x)
        read = self.read(y, memory, mask=memory_mask)
        return x + self.attend(y, mask=self_mask) + read + self.feed(y)

    def start(self, memory):
        keys, values = self.read.project_keys_and_values(memory, memory)
        return BlockState(keys[:, :, :0], keys[:, :, :0], keys, values)

    def step(self, x, state, memory_mask=None):
        y = self.norm(x)
        state = state.grown(*self.attend.project_keys_and_values(y, y))
        read = self.read.attend(y, state.memory_keys, state.memory_values, memory_mask)
        own = self.attend.attend(y, state.self_keys, state.self_values)
        return x + own + read + self.feed(y), state


class Stock(DecoderBlock):
    """The package's block; those below change it."""

    def __init__(self, config: ModelConfig, parts: ModelParts):
        super().__init__(config.d_model, config.num_heads, config.d_ff, parts=parts)


class MemoryFirst(Stock):
    """The names stay, the order does not: it reads the memory before the target."""

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.cross_attention(x, memory, mask=memory_mask)
        return self.feed_forward(self.self_attention(x, mask=self_mask))

    def step(self, x, state, memory_mask=None):
        own, cross = self.self_attention.sublayer, self.cross_attention.sublayer
        keys, values = state.memory_keys, state.memory_values
        y = self.cross_attention.before(x)
        x = self.cross_attention.add(x, cross.attend(y, keys, values, memory_mask))
        y = self.self_attention.before(x)
        state = state.grown(*own.project_keys_and_values(y, y))
        x = self.self_attention.add(x, own.attend(y, state.self_keys, state.self_values))
        return self.feed_forward(x), state


class FirstState(Stock):
    """No cross-attention: each position reads the memory's first state."""

    def forward(self, x, memory, self_mask=None, _memory_mask=None):
        return self.feed_forward(self.self_attention(x, mask=self_mask) + memory[:, :1])

    def start(self, memory):
        empty = self.self_attention.sublayer.split(memory[:, :0])
        first = self.self_attention.sublayer.split(memory[:, :1])
        return BlockState(empty, empty, first, first)

    def step(self, x, state, _memory_mask=None):
        own = self.self_attention.sublayer
        y = self.self_attention.before(x)
        state = state.grown(*own.project_keys_and_values(y, y))
        x = self.self_attention.add(x, own.attend(y, state.self_keys, state.self_values))
        return self.feed_forward(x + own.merge(state.memory_keys)), state


class ReadsTwice(Stock):
    """Two cross-attentions in a block, with the same weights."""

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = super().forward(x, memory, self_mask, memory_mask)
        return self.cross_attention(x, memory, mask=memory_mask)

    def step(self, x, state, memory_mask=None):
        x, state = super().step(x, state, memory_mask)
        y, cross = self.cross_attention.before(x), self.cross_attention.sublayer
        read = cross.attend(y, state.memory_keys, state.memory_values, memory_mask)
        return self.cross_attention.add(x, read), state


class Locked(Stock):
    """It holds what cannot be copied deeply."""

    def __init__(self, config: ModelConfig, parts: ModelParts):
        super().__init__(config, parts)
        self.lock = threading.Lock()

    def forward(self, *args, **options):
        with self.lock:
            return super().forward(*args, **options)


class Tabled(Stock):
    """A table that is no weight, and a moving mean that training changes."""

    def __init__(self, config: ModelConfig, parts: ModelParts):
        super().__init__(config, parts)
        self.register_buffer("table", torch.arange(config.d_model) / 100, persistent=False)
        self.register_buffer("mean", torch.zeros(config.d_model))

    def forward(self, x, *args, **options):
        if self.training:
            self.mean.mul_(0.5).add_(0.5 * x.detach().mean((0, 1)))
        return super().forward(x + self.table - self.mean, *args, **options)

    def step(self, x, state, memory_mask=None):
        return super().step(x + self.table - self.mean, state, memory_mask)


def with_blocks(new: Callable[[ModelConfig, ModelParts], nn.Module], *, shared: bool = False):
    """The function that makes a Transformer with these decoder blocks, or one in each place."""

    def own(config: ModelConfig, parts: ModelParts) -> Transformer:
        model = Transformer(config, parts)
        blocks = [new(config, parts) for _ in model.decoder.blocks]
        model.decoder.blocks = nn.ModuleList(blocks[:1] * len(blocks) if shared else blocks)
        return model

    return own
