"""The Transformer for fast decoding: the same sums in fewer and larger steps.

The readable version is ``Transformer`` in ``model/transformer.py``. A test checks that both give
equal logits (tests/model/fast/test_decoder.py). This decoder differs in three ways:

- It arranges the weights once. One matrix computes queries, keys and values of a self-attention;
  another computes the memory's keys and values of all blocks. Each has the layout that is fastest
  for its products (:mod:`glassformer.model.fast.packed_linear`).
- The state is a :class:`~glassformer.model.fast.cache.GroupedState`, which copies fewer keys.
- It has no dropout, and returns no attention weights.

The decoder raises TypeError for a model with modules from outside the package.
"""

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.model.attention import MultiHeadAttention
from glassformer.model.blocks import FeedForward, ResidualBlock
from glassformer.model.cache import Memory, check_rows
from glassformer.model.decoder import DecoderBlock
from glassformer.model.encoder import EncoderBlock
from glassformer.model.fast.cache import GroupedState
from glassformer.model.fast.packed_linear import product
from glassformer.model.fast.stock import Stamp, check_stock
from glassformer.model.masks import padding_mask
from glassformer.model.transformer import Transformer

__all__ = ["PreparedTransformer"]

Layer: TypeAlias = Callable[[Tensor], Tensor]


class PreparedTransformer:
    """A drop-in for ``Transformer`` in ``decode_sentences``.

    It copies some weights, and copies them anew before a sentence if the model's weights have
    changed. It does not see a change in place through ``weight.data``, which torch does not count.

    ``dtype`` is the type of the copies and of the sums; None: the model's. ``torch.bfloat16`` is
    fast on a machine with matrix units for it. No mask hides padding among *earlier target tokens*,
    as in the plain step: no search produces padding.

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

    def __init__(self, model: Transformer, *, dtype: torch.dtype | None = None) -> None:
        self.config, self._model, self._dtype = model.config, model, dtype
        self._arranged: _Arranged | None = None
        self._stamp: Stamp | None = None

    def encode(self, source: Int[Tensor, "batch src_len"]) -> Memory:
        """The encoder's states, and the mask that hides padding."""
        return self._current().encode(source)

    def start(self, memory: Memory) -> GroupedState:
        """The state before the first token, with the memory's keys and values computed once."""
        return (self._arranged or self._current()).start(memory)

    def step(
        self, tokens: Int[Tensor, " rows"], state: GroupedState
    ) -> tuple[Float[Tensor, "rows vocab"], GroupedState]:
        """Read one token in each row; return the logits of the next one and the new state."""
        return (self._arranged or self._current()).step(tokens, state)

    def _current(self) -> "_Arranged":
        """The weights as they are now, arranged."""
        model = self._model
        if model.training:
            raise ValueError("the model is in training mode: call model.eval() before decoding")
        if self._arranged is None or self._stamp is None or not self._stamp.holds(model):
            check_stock(model, "the fast decoder", ": give parts with decoder=itself")
            self._stamp = Stamp(model)
            if self._dtype is not None:
                model = copy.deepcopy(model).to(self._dtype)
            self._arranged = _Arranged(model)
        return self._arranged


class _Arranged:
    """The weights of a model in the layouts of the fast decoder."""

    def __init__(self, model: Transformer) -> None:
        self.config = model.config
        self._model = model
        with torch.no_grad():
            self._encoder = [_EncoderBlock(block) for block in list[Any](model.encoder.blocks)]
            self._decoder = [_DecoderBlock(block) for block in list[Any](model.decoder.blocks)]
            attentions = [block.cross_attention.sublayer for block in model.decoder.blocks]
            self._project_memory = _joint(
                [linear for attention in attentions for linear in (attention.key, attention.value)]
            )
            self._project = product(model.output_weight, model.output_bias)

    def encode(self, source: Tensor) -> Memory:
        padding = padding_mask(source, self.config.pad_of_source)
        mask = _added(padding, self._model.output_weight.dtype)
        x = self._model.source_positions(self._model.source_embedding(source))
        for block in self._encoder:
            x = block(x, mask)
        return Memory(self._model.encoder.norm(x), padding)

    def start(self, memory: Memory) -> GroupedState:
        batch, src_len, d_model = memory.states.shape
        projected = self._project_memory(memory.states).view(batch, src_len, -1, 2, d_model)
        # All weights are equal if a source is only padding: values of zero then give zeros.
        projected[:, :, :, 1].masked_fill_(~memory.mask.view(batch, src_len, 1, 1), 0.0)
        blocks = [block.transpose(1, 2).contiguous() for block in projected.unbind(2)]
        empty = [block[:, :, :0] for block in blocks]
        return GroupedState(empty, blocks, _added(memory.mask, projected.dtype))

    def step(self, tokens: Tensor, state: GroupedState) -> tuple[Tensor, GroupedState]:
        check_rows(len(tokens), state.rows)
        embedding = self._model.target_embedding
        x = F.embedding(tokens, embedding.weight) * embedding.factor
        x = self._model.target_positions(x[:, None], start=state.length)
        state = state.grown()
        for number, block in enumerate(self._decoder):
            x = block(x, number, state)
        return self._project(self._model.decoder.norm(x[:, 0])), state


class _EncoderBlock:
    def __init__(self, block: EncoderBlock) -> None:
        self.attention = _SelfAttention(block.self_attention.sublayer)
        self.around_attention = _Residual(block.self_attention)
        self.around_feed_forward = _Residual(block.feed_forward)
        self.feed_forward = _feed_forward(block.feed_forward.sublayer)

    def __call__(self, x: Tensor, mask: Tensor | None) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            query, key, value = self.attention.project(x).chunk(3, dim=-1)
            return self.attention.output(_attend(query, key, value, mask, self.attention.heads))

        return self.around_feed_forward(self.around_attention(x, attend), self.feed_forward)


class _DecoderBlock:
    def __init__(self, block: DecoderBlock) -> None:
        self.attention = _SelfAttention(block.self_attention.sublayer)
        self.around_attention = _Residual(block.self_attention)
        self.query = _linear(block.cross_attention.sublayer.query)
        self.output = _linear(block.cross_attention.sublayer.output)
        self.around_cross = _Residual(block.cross_attention)
        self.feed_forward = _feed_forward(block.feed_forward.sublayer)
        self.around_feed_forward = _Residual(block.feed_forward)

    def __call__(self, x: Tensor, number: int, state: GroupedState) -> Tensor:
        """``state`` is the state after this step; the block writes its newest keys into it."""
        heads, cache, memory = self.attention.heads, state.blocks[number], state.memory[number]
        rows, _, d_model = x.shape

        def attend(x: Tensor) -> Tensor:
            query, newest = self.attention.project(x).split((d_model, 2 * d_model), dim=2)
            cache[:, :, -1] = newest.view(rows, 2, d_model)
            key, value = cache.unbind(1)
            return self.attention.output(_attend(query, key, value, None, heads))

        def attend_to_memory(x: Tensor) -> Tensor:
            key, value = memory.unbind(1)
            query = self.query(x).view(state.sentences, state.width, d_model)
            read = _attend(query, key, value, state.memory_mask, heads)
            return self.output(read.view(rows, 1, d_model))

        x = self.around_attention(x, attend)
        x = self.around_cross(x, attend_to_memory)
        return self.around_feed_forward(x, self.feed_forward)


class _Residual:
    """The norm and the sum of a :class:`ResidualBlock`, without dropout."""

    def __init__(self, block: ResidualBlock[Any]) -> None:
        norm, self.norm_first = block.norm, block.norm_first
        assert isinstance(norm, nn.LayerNorm)  # check_stock refuses others
        shape, weight, bias, eps = norm.normalized_shape, norm.weight, norm.bias, norm.eps
        self.norm: Layer = lambda x: torch.layer_norm(x, shape, weight, bias, eps)

    def __call__(self, x: Tensor, sublayer: Layer) -> Tensor:
        return x + sublayer(self.norm(x)) if self.norm_first else self.norm(x + sublayer(x))


class _SelfAttention:
    def __init__(self, attention: MultiHeadAttention) -> None:
        self.heads = attention.num_heads
        self.project = _joint([attention.query, attention.key, attention.value])
        self.output = _linear(attention.output)


def _feed_forward(sublayer: FeedForward) -> Layer:
    inner, outer = _linear(sublayer.inner), _linear(sublayer.outer)
    activation = sublayer.activation
    return lambda x: outer(activation(inner(x)))


def _joint(projections: list[nn.Linear]) -> Layer:
    """Several projections of one input as one product, with the outputs side by side."""
    weight = torch.cat([projection.weight for projection in projections])
    bias = torch.cat([projection.bias for projection in projections])
    return product(weight, bias)


def _linear(linear: nn.Linear) -> Layer:
    return product(linear.weight, linear.bias)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, heads: int) -> Tensor:
    """Attention of all heads, from and to (sentences, len, d_model); it adds ``mask`` to scores."""
    if query.device.type == "cpu" and len(query) == 1:
        return _attend_alone(query, key, value, mask, heads)

    def split(x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), heads, x.size(2) // heads).transpose(1, 2)

    output = F.scaled_dot_product_attention(split(query), split(key), split(value), attn_mask=mask)
    return output.transpose(1, 2).flatten(-2)


def _attend_alone(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, heads: int
) -> Tensor:
    """:func:`_attend` for one sentence, as two products.

    Fused attention has a larger fixed cost for each call, which counts for a single sentence.
    """
    d_head = query.size(2) // heads

    def split(x: Tensor) -> Tensor:
        return x.view(-1, heads, d_head).transpose(0, 1)  # (heads, len, d_head)

    added, beta = (query.new_empty(()), 0) if mask is None else (mask[0], 1)
    keys = split(key).transpose(1, 2)
    scores = torch.baddbmm(added, split(query), keys, beta=beta, alpha=d_head**-0.5)
    return torch.bmm(scores.softmax(dim=2), split(value)).transpose(0, 1).reshape(query.shape)


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor | None:
    """A mask to add to scores: 0 for True, the lowest number for False; None if all are True.

    With -inf for False, a fully masked row would be NaN.
    """
    if mask.all():
        return None
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)
