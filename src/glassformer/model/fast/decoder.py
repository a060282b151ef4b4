"""The Transformer once more, for decoding at speed: the same sums in fewer and larger steps.

The plain form is :class:`glassformer.model.transformer.Transformer`; tests hold the two equal. What
differs:

- Weights are arranged once: queries, keys and values of a self-attention are one matrix, all
  blocks' keys and values of the memory are another; each lies in memory as its products want it
  (:mod:`glassformer.model.fast.packed_linear`).
- The state is a :class:`~glassformer.model.fast.beam_cache.PooledState`: its keys stay where they
  are.
- Nothing is there that only training or inspection needs: no dropout, no weights to look at.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.model.attention import MultiHeadAttention
from glassformer.model.blocks import FeedForward, ResidualBlock
from glassformer.model.cache import Memory
from glassformer.model.decoder import DecoderBlock
from glassformer.model.encoder import EncoderBlock
from glassformer.model.fast.beam_cache import KeyPool, PooledState
from glassformer.model.fast.packed_linear import product
from glassformer.model.masks import padding_mask
from glassformer.model.transformer import Transformer

__all__ = ["PreparedTransformer"]

Read: TypeAlias = Callable[[Tensor], Tensor]


class PreparedTransformer:
    """What ``decode_sentences`` takes for a model, made from one. Later changes of the model's
    weights reach it in part or not at all: prepare it anew.

    ``weights="bfloat16"`` rounds them, and computes, in bfloat16: good where the machine has matrix
    units for it. A sum over pad among *earlier target tokens* is not masked, as in the plain step:
    the searches never produce a pad.

    >>> from glassformer.config import ModelConfig
    >>> model = Transformer(ModelConfig(source_vocab_size=11, target_vocab_size=11, d_model=8,
    ...     num_heads=2, d_ff=16, num_encoder_layers=1, num_decoder_layers=1)).eval()
    >>> fast, source, token = PreparedTransformer(model), torch.tensor([[5, 6]]), torch.tensor([2])
    >>> with torch.inference_mode():
    ...     plain, _ = model.step(token, model.start(model.encode(source)))
    ...     logits, _ = fast.step(token, fast.start(fast.encode(source)))
    >>> torch.allclose(logits, plain, atol=1e-5)
    True
    """

    def __init__(self, model: Transformer, *, weights: str = "as they are") -> None:
        if model.training:
            raise ValueError("the model is in training mode: call model.eval() before decoding")
        if weights not in ("as they are", "bfloat16"):
            raise ValueError(f"weights {weights!r}: expected 'as they are' or 'bfloat16'")
        if weights == "bfloat16":
            model = copy.deepcopy(model).bfloat16()
        self.config = model.config
        self._model = model
        with torch.no_grad():
            read, written = list[Any](model.encoder.blocks), list[Any](model.decoder.blocks)
            self._encoder = [_EncoderBlock(block) for block in read]
            self._decoder = [_DecoderBlock(block) for block in written]
            crossed = [block.cross_attention.sublayer for block in written]
            self._read_memory = _joint([part for one in crossed for part in (one.key, one.value)])
            self._project = product(model.output_weight, model.output_bias)

    def encode(self, source: Int[Tensor, "batch src_len"]) -> Memory:
        """The encoder's states, and the mask of those that may be attended to."""
        real = padding_mask(source, self.config.pad_id)
        mask = _added(real, self._model.output_weight.dtype)
        x = self._model.source_positions(self._model.source_embedding(source))
        for block in self._encoder:
            x = block(x, mask)
        return Memory(self._model.encoder.norm(x), real)

    def start(self, memory: Memory) -> PooledState:
        """The state before the first token, with the memory's keys and values computed once."""
        batch, src_len, d_model = memory.states.shape
        read = self._read_memory(memory.states).view(batch, src_len, -1, 2, d_model)
        # Where a source is nothing but padding, all weights are equal: zeros are then read.
        read[:, :, :, 1].masked_fill_(~memory.mask.view(batch, src_len, 1, 1), 0.0)
        blocks = [one.transpose(1, 2).contiguous() for one in read.unbind(2)]
        empty = KeyPool([one[:, :, :0] for one in blocks], 0)
        return PooledState(empty, 0, None, blocks, _added(memory.mask, read.dtype))

    def step(
        self, tokens: Int[Tensor, " rows"], state: PooledState
    ) -> tuple[Float[Tensor, "rows vocab"], PooledState]:
        """Read one token a row; return the next token's logits and the state after it."""
        embedding = self._model.target_embedding
        x = F.embedding(tokens, embedding.weight) * embedding.factor
        x = self._model.target_positions(x[:, None], start=state.length)
        x = x.view(state.sentences, state.width, x.size(-1))
        state = state.grown()
        for number, block in enumerate(self._decoder):
            x = block(x, number, state)
        return self._project(self._model.decoder.norm(x).flatten(0, 1)), state


class _EncoderBlock:
    def __init__(self, block: EncoderBlock) -> None:
        self.attention = _SelfAttention(block.self_attention.sublayer)
        self.around_attention = _Residual(block.self_attention)
        self.around_feed_forward = _Residual(block.feed_forward)
        self.feed_forward = _feed_forward(block.feed_forward.sublayer)

    def __call__(self, x: Tensor, mask: Tensor | None) -> Tensor:
        def read(x: Tensor) -> Tensor:
            query, key, value = self.attention.read(x).chunk(3, dim=-1)
            return self.attention.output(_attend(query, key, value, mask, self.attention.heads))

        return self.around_feed_forward(self.around_attention(x, read), self.feed_forward)


class _DecoderBlock:
    def __init__(self, block: DecoderBlock) -> None:
        self.attention = _SelfAttention(block.self_attention.sublayer)
        self.around_attention = _Residual(block.self_attention)
        self.query = _of(block.cross_attention.sublayer.query)
        self.output = _of(block.cross_attention.sublayer.output)
        self.around_cross = _Residual(block.cross_attention)
        self.feed_forward = _feed_forward(block.feed_forward.sublayer)
        self.around_feed_forward = _Residual(block.feed_forward)

    def __call__(self, x: Tensor, number: int, state: PooledState) -> Tensor:
        """``state`` is the one after this step; the block writes its newest keys into it."""
        heads, own, memory = self.attention.heads, state.own(number), state.memory[number]
        sentences, width, d_model = x.shape

        def read_self(x: Tensor) -> Tensor:
            read = self.attention.read(x)
            query, new = read[:, :, :d_model], read[:, :, d_model:]
            own[:, :, -width:] = new.view(sentences, width, 2, d_model).transpose(1, 2)
            key, value = own.unbind(1)
            return self.attention.output(_attend(query, key, value, state.mask, heads))

        def read_memory(x: Tensor) -> Tensor:
            key, value = memory.unbind(1)
            return self.output(_attend(self.query(x), key, value, state.memory_mask, heads))

        x = self.around_attention(x, read_self)
        x = self.around_cross(x, read_memory)
        return self.around_feed_forward(x, self.feed_forward)


class _Residual:
    """What :class:`ResidualBlock` does around its sublayer, without dropout."""

    def __init__(self, block: ResidualBlock[Any]) -> None:
        norm, self.norm_first = block.norm, block.norm_first
        shape, weight, bias, eps = norm.normalized_shape, norm.weight, norm.bias, norm.eps
        self.norm: Read = lambda x: torch.layer_norm(x, shape, weight, bias, eps)

    def __call__(self, x: Tensor, read: Read) -> Tensor:
        return x + read(self.norm(x)) if self.norm_first else self.norm(x + read(x))


class _SelfAttention:
    def __init__(self, attention: MultiHeadAttention) -> None:
        self.heads = attention.num_heads
        self.read = _joint([attention.query, attention.key, attention.value])
        self.output = _of(attention.output)


def _feed_forward(part: FeedForward) -> Read:
    inner, outer, activation = _of(part.inner), _of(part.outer), part.activation
    return lambda x: outer(activation(inner(x)))


def _joint(parts: list[nn.Linear]) -> Read:
    """Several projections of one thing as one, side by side."""
    weight = torch.cat([part.weight for part in parts])
    bias = torch.cat([part.bias for part in parts])
    return product(weight, bias)


def _of(linear: nn.Linear) -> Read:
    return product(linear.weight, linear.bias)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, heads: int) -> Tensor:
    """Attention of all heads, from and to (sentences, len, d_model); the mask is added."""
    if query.device.type == "cpu" and len(query) == 1:
        return _attend_alone(query, key, value, mask, heads)

    def split(x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), heads, x.size(2) // heads).transpose(1, 2)

    read = F.scaled_dot_product_attention(split(query), split(key), split(value), attn_mask=mask)
    return read.transpose(1, 2).flatten(-2)


def _attend_alone(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, heads: int
) -> Tensor:
    """:func:`_attend` for one sentence, as two products: less around them than in fused attention,
    which is what the time of one sentence goes to."""
    width = query.size(2) // heads

    def split(x: Tensor) -> Tensor:
        return x.view(-1, heads, width).transpose(0, 1)  # (heads, len, width)

    added, beta = (query.new_empty(()), 0) if mask is None else (mask[0], 1)
    keys = split(key).transpose(1, 2)
    scores = torch.baddbmm(added, split(query), keys, beta=beta, alpha=width**-0.5)
    return torch.bmm(scores.softmax(dim=2), split(value)).transpose(0, 1).reshape(query.shape)


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor | None:
    """A mask to be added to scores: 0 for True. None where it would change nothing.

    The lowest number, not -inf: a row that is masked throughout would be NaN.
    """
    if mask.all():
        return None
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)
