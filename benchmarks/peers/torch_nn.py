"""``torch.nn.Transformer`` with embeddings, sinusoids and a tied projection around it.

Post-norm, as in the paper. The norms that ``nn.Transformer`` adds behind its stacks are left out,
so that the model is the same function as ours.
"""

import math

import torch
from torch import Tensor, nn

from benchmarks.peers.measure import Arrays, job
from benchmarks.peers.torch_training import smoothed_loss, train

__all__ = ["Translation"]


class Translation(nn.Module):
    """``nn.Transformer`` between one embedding matrix, used three times."""

    def __init__(self) -> None:
        super().__init__()
        model = job["model"]
        width, self.pad_id = model["d_model"], model["pad_id"]
        sizes = (width, model["num_heads"], model["d_ff"], model["dropout"])
        encoder, decoder = (
            kind(*sizes, batch_first=True)
            for kind in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
        )
        self.embedding = nn.Embedding(model["vocab_size"], width)
        self.dropout = nn.Dropout(model["dropout"])
        self.transformer = nn.Transformer(
            width,
            batch_first=True,
            custom_encoder=nn.TransformerEncoder(
                encoder, model["num_encoder_layers"], enable_nested_tensor=False
            ),
            custom_decoder=nn.TransformerDecoder(decoder, model["num_decoder_layers"]),
        )
        for weight in self.transformer.parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.register_buffer("positions", sinusoids(model["max_length"], width))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        hidden = source == self.pad_id
        length = target.size(1)
        future = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        states = self.transformer(
            self.embedded(source),
            self.embedded(target),
            tgt_mask=future,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
            tgt_is_causal=True,
        )
        return nn.functional.linear(states, self.embedding.weight)

    def embedded(self, tokens: Tensor) -> Tensor:
        scale = math.sqrt(self.embedding.embedding_dim)
        return self.dropout(self.embedding(tokens) * scale + self.positions[: tokens.size(1)])


def sinusoids(length: int, width: int) -> Tensor:
    """Section 3.5: sines at even places, cosines at odd ones."""
    angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def _loss(model: nn.Module, batch: Arrays) -> Tensor:
    return smoothed_loss(model(batch.source, batch.target), batch.labels)


if __name__ == "__main__":
    train(Translation(), _loss, library=f"torch {torch.__version__}")
