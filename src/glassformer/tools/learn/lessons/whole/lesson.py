# %% [markdown]
# # The whole Transformer
#
# > "Given z, the decoder then generates an output sequence (y1, ..., ym) of
# > symbols one element at a time." (section 3; z is the encoder's output, the
# > memory)
#
# Figure 1 has two towers. The left one turns source tokens into the memory.
# The right one reads the target so far and the memory. A matrix then gives
# each token of the vocabulary a score for the next place: the *logits*. In
# training, all places of the target are computed at once.
#
#     source -> embedding -> + positions -> encoder -> memory
#                                                        |
#     target -> embedding -> + positions ------------> decoder -> projection
#                                                                     |
#                                                                   logits
#
# Two masks are made here, and this is the only place that knows the tokens:
#
# - the source mask hides padding, in the encoder *and* in each
#   cross-attention. So the memory is a record of two values, the encoder's
#   states and the source mask.
# - the target mask hides padding and later words.
#
# The logits are not probabilities: the loss applies the softmax. The target
# begins with the start symbol already: the batches have shifted it.

# %%
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer import (
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    Memory,
    ModelConfig,
    PositionalEncoding,
    ScaledEmbedding,
)

# Memory(states, mask), padding_mask(tokens, pad), target_mask(tokens, pad)
from glassformer.model import masks


class Transformer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        width, dropout = config.d_model, config.dropout
        sizes = (width, config.num_heads, config.d_ff)
        sources, targets = config.source_vocab_size, config.target_vocab_size
        self.source_embedding = ScaledEmbedding(sources, width)
        self.target_embedding = ScaledEmbedding(targets, width)
        self.source_positions = PositionalEncoding(width, dropout=dropout)
        self.target_positions = PositionalEncoding(width, dropout=dropout)
        encoders = range(config.num_encoder_layers)
        decoders = range(config.num_decoder_layers)
        self.encoder = Encoder(
            [EncoderBlock(*sizes, dropout=dropout) for _ in encoders]
        )
        self.decoder = Decoder(
            [DecoderBlock(*sizes, dropout=dropout) for _ in decoders]
        )

    def encode(
        self, source: Tensor, *, source_mask: Tensor | None = None
    ) -> Memory:
        """The encoder's states, and the mask that hides the padding.

        source (batch, src_len)
        -> states (batch, src_len, d_model), mask (batch, 1, 1, src_len)

        A mask that the caller gives is used as it is. Otherwise
        self.config.pad_id is padding: with pad_id 0, source [[5, 6, 0]] has
        the mask [[[[True, True, False]]]].
        """
        # Four lines: two for the mask, the encoder's input, the memory.
        raise NotImplementedError

    def decode(
        self,
        target: Tensor,
        memory: Memory,
        *,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """The decoder's states for a whole target at once, as in training.

        target (batch, tgt_len) -> (batch, tgt_len, d_model)

        A mask that the caller gives is used as it is. Otherwise the mask hides
        padding and later words: with pad_id 0, target [[2, 7, 0]] has
        [[1, 0, 0], [1, 1, 0], [1, 1, 0]].
        """
        # Four lines, as above.
        raise NotImplementedError

    def project(self, states: Tensor) -> Tensor:
        """Logits, by the target embedding's own matrix (section 3.4)."""
        return F.linear(states, self.target_embedding.weight)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Figure 1: the logits of each next target token.

        source (batch, src_len), target (batch, tgt_len)
        -> (batch, tgt_len, vocab)

        Two sources of 7 tokens, two targets of 5 and 17 target tokens in the
        vocabulary give logits (2, 5, 17).
        """
        # Two lines: encode the source; decode the target, and project.
        raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Make a model with random weights. How large is its loss, and how large is
#    ln(vocab)?
# 2. Add two columns of padding to source. What changes in the logits?
