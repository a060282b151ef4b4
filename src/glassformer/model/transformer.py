"""The Transformer (figure 1): embeddings, encoder, decoder, and the projection to logits."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.config import ModelConfig
from glassformer.model import masks
from glassformer.model.cache import DecoderState, Memory, check_rows
from glassformer.model.decoder import Decoder, DecoderBlock
from glassformer.model.embeddings import ScaledEmbedding
from glassformer.model.encoder import Encoder, EncoderBlock
from glassformer.model.forms import PAPER, ModelParts, configured
from glassformer.support.errors import check_kind

__all__ = ["Transformer", "initialise"]


class Transformer(nn.Module):
    """The model from source and target tokens to the logits of each next target token.

    The decoder reads ``target``, which begins with the start symbol. By default the masks hide
    padding. A ``source_mask`` of one row, ``(batch, 1, 1, src_len)``, also hides source tokens from
    the decoder. A ``source_mask`` with a row for each query acts in the encoder alone. A
    ``target_mask`` has a row for each query, because the mask also hides the future. Decoding step
    by step gives equal logits: ``encode``, ``start``, then one ``step`` after another.

    >>> import torch
    >>> model = Transformer(ModelConfig(source_vocab_size=11, target_vocab_size=11, d_model=8,
    ...     num_heads=2, d_ff=16, num_encoder_layers=1, num_decoder_layers=1)).eval()
    >>> source, target = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]])
    >>> logits = model(source, target)
    >>> logits.shape
    torch.Size([1, 2, 11])
    >>> first, state = model.step(target[:, 0], model.start(model.encode(source)))
    >>> torch.allclose(first, logits[:, 0], atol=1e-5)
    True
    """

    def __init__(self, config: ModelConfig, parts: ModelParts = PAPER) -> None:
        super().__init__()
        check_kind(config, ModelConfig, wants='Transformer takes ModelConfig(**presets["tiny"], …)')
        self.config = config
        parts = configured(parts, config)
        d_model, vocab_size = config.d_model, config.target_vocab_size
        sizes = (d_model, config.num_heads, config.d_ff)
        settings: dict[str, Any] = {"dropout": config.dropout, "norm": config.norm, "parts": parts}
        scale = config.scale_embeddings

        self.source_embedding = ScaledEmbedding(config.source_vocab_size, d_model, scale=scale)
        self.target_embedding = (
            self.source_embedding
            if config.tying in ("three-way", "embeddings")
            else ScaledEmbedding(vocab_size, d_model, scale=scale)
        )
        self.source_positions = parts.positions(d_model, max_length=config.max_length_of_source)
        self.target_positions = parts.positions(d_model, max_length=config.max_length)
        self.encoder = Encoder(
            [EncoderBlock(*sizes, **settings) for _ in range(config.num_encoder_layers)],
            final_norm=parts.norm(d_model) if config.norm == "pre" else None,
        )
        self.decoder = Decoder(
            [DecoderBlock(*sizes, **settings) for _ in range(config.num_decoder_layers)],
            final_norm=parts.norm(d_model) if config.norm == "pre" else None,
        )
        # Section 3.4: the output matrix is the target embedding's, if they are tied.
        tied = config.tying in ("three-way", "target")
        self.output = None if tied else nn.Linear(d_model, vocab_size, bias=False)
        self.output_bias = nn.Parameter(torch.zeros(vocab_size)) if config.output_bias else None
        initialise(self)

    def forward(
        self,
        source: Int[Tensor, "batch src_len"],
        target: Int[Tensor, "batch tgt_len"],
        *,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Float[Tensor, "batch tgt_len vocab"]:
        if source.size(0) != target.size(0):
            raise ValueError(
                f"source has {source.size(0)} sentences and target {target.size(0)}:"
                " they must be pairs"
            )
        memory = self.encode(source, source_mask=source_mask)
        return self.project(self.decode(target, memory, target_mask=target_mask))

    def encode(
        self, source: Int[Tensor, "batch src_len"], *, source_mask: Tensor | None = None
    ) -> Memory:
        """The encoder's states, and the mask that hides padding."""
        padding = masks.padding_mask(source, self.config.pad_of_source)
        if source_mask is None:
            source_mask = padding
        embedded = self.source_positions(self.source_embedding(source))
        states = self.encoder(embedded, source_mask)
        of_tokens = source_mask.shape[1:3] == (1, 1)  # one row for every query
        return Memory(states, source_mask.expand_as(padding) if of_tokens else padding)

    def decode(
        self,
        target: Int[Tensor, "batch tgt_len"],
        memory: Memory,
        *,
        target_mask: Tensor | None = None,
    ) -> Float[Tensor, "batch tgt_len d_model"]:
        """The decoder's states for a whole target at once, as in training."""
        if target_mask is None:
            target_mask = masks.target_mask(target, self.config.pad_id)
        elif target_mask.shape[-2:-1] != target.shape[1:]:
            raise ValueError(
                f"a target_mask of shape {tuple(target_mask.shape)} shows the future: give a row"
                f" for each of the {target.size(1)} queries, as target_mask(tokens, pad) does"
            )
        embedded = self.target_positions(self.target_embedding(target))
        return self.decoder(embedded, memory.states, target_mask, memory.mask)

    def project(self, states: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """The logits, which are the scores of all tokens of the target vocabulary."""
        return F.linear(states, self.output_weight, self.output_bias)

    @property
    def output_weight(self) -> Float[Tensor, "vocab d_model"]:
        """The projection's matrix, which is the target embedding's weight if both are tied."""
        return self.target_embedding.weight if self.output is None else self.output.weight

    def start(self, memory: Memory) -> DecoderState:
        """The state before the first token, with the memory's keys and values computed once."""
        return DecoderState(self.decoder.start(memory.states), memory.mask)

    def step(
        self, tokens: Int[Tensor, " rows"], state: DecoderState
    ) -> tuple[Float[Tensor, "rows vocab"], DecoderState]:
        """Read one token in each row; return the next token's logits and the new state."""
        check_rows(len(tokens), state.rows)
        embedded = self.target_positions(self.target_embedding(tokens[:, None]), start=state.length)
        x, blocks = self.decoder.step(embedded, state.blocks, state.memory_mask)
        return self.project(x[:, 0]), DecoderState(blocks, state.memory_mask)


def initialise(model: nn.Module) -> None:
    """Set Xavier-uniform matrices and zero biases; embeddings keep their N(0, 1/d_model).

    The paper names no initialisation; later post-norm models use Xavier's.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
