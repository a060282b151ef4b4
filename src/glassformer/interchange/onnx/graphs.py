"""The two graphs of a translator: the encoder once, then the decoder token by token.

Each is a module whose inputs and outputs are tensors alone, as ONNX wants them. The decoder's
keys and values of earlier steps come in and go out. Both are made of the model's own parts.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.config import ModelConfig
from glassformer.model.cache import BlockState
from glassformer.model.embeddings import ScaledEmbedding
from glassformer.model.transformer import Transformer

__all__ = ["DecoderGraph", "EncoderGraph", "cache_names"]

_KINDS = ("decoder.key", "decoder.value", "encoder.key", "encoder.value")


def cache_names(config: ModelConfig, prefix: str) -> list[str]:
    """The names of the caches, block by block: of the target so far, then of the memory.

    >>> config = ModelConfig(source_vocab_size=9, target_vocab_size=9, num_decoder_layers=1)
    >>> cache_names(config, "present")[:2]
    ['present.0.decoder.key', 'present.0.decoder.value']
    """
    return [
        f"{prefix}.{block}.{kind}" for block in range(config.num_decoder_layers) for kind in _KINDS
    ]


class EncoderGraph(nn.Module):
    """From source tokens to the encoder's states."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Int[Tensor, "batch src_len"],
        attention_mask: Int[Tensor, "batch src_len"],
    ) -> Float[Tensor, "batch src_len d_model"]:
        model = self.model
        embedded = model.source_positions(_embedded(model.source_embedding, input_ids))
        return model.encoder(embedded, _attended(attention_mask))


class DecoderGraph(nn.Module):
    """From one token of each target to the logits of the next, and the caches after it.

    ``caches``: the four of :func:`cache_names` for each block, ``(batch, heads, len, d_head)``. At
    the first step all are of length 0. The memory's keys and values are then computed for all of
    its positions, and later for none: those beyond the length of the cache.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Int[Tensor, "batch 1"],
        encoder_hidden_states: Float[Tensor, "batch src_len d_model"],
        encoder_attention_mask: Int[Tensor, "batch src_len"],
        caches: list[Tensor],
    ) -> tuple[Float[Tensor, "batch 1 vocab"], list[Tensor]]:
        model = self.model
        states = []
        for block, at in zip(model.decoder.blocks, range(0, len(caches), 4), strict=True):
            self_keys, self_values, keys, values = caches[at : at + 4]
            rest = encoder_hidden_states[:, keys.size(2) :]
            added = block.cross_attention.sublayer.project_keys_and_values(rest, rest)
            states.append(
                BlockState(
                    self_keys,
                    self_values,
                    torch.cat((keys, added[0]), dim=2),
                    torch.cat((values, added[1]), dim=2),
                )
            )
        embedded = _embedded(model.target_embedding, input_ids)
        x = model.target_positions(embedded, start=caches[0].size(2))
        x, after = model.decoder.step(x, tuple(states), _attended(encoder_attention_mask))
        new = [
            cache
            for state in after
            for cache in (
                state.self_keys,
                state.self_values,
                state.memory_keys,
                state.memory_values,
            )
        ]
        return model.project(x), new


def _embedded(
    embedding: ScaledEmbedding, tokens: Int[Tensor, "batch len"]
) -> Float[Tensor, "batch len d_model"]:
    """As the embedding itself, but without its check of the ids, which a graph cannot hold."""
    return F.embedding(tokens, embedding.weight) * embedding.factor


def _attended(attention_mask: Int[Tensor, "batch len"]) -> Bool[Tensor, "batch 1 1 len"]:
    return attention_mask[:, None, None, :] != 0
