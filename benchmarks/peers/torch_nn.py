"""``torch.nn.Transformer`` with embeddings, sinusoids and a tied projection around it.

Post-norm, as in the paper. The norms that ``nn.Transformer`` adds behind its stacks are left out,
so that the model is the same function as ours and can begin with the same weights.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.peers.measure import Arrays, job
from benchmarks.peers.torch_training import smoothed_loss, train

__all__ = ["Translation", "load_ours"]


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


def load_ours(model: Translation, path: str) -> None:
    """Begin with the weights of one of our models, stored under our names."""
    with np.load(path) as stored:
        ours = {name: torch.from_numpy(stored[name]) for name in stored.files}
    theirs = {"embedding.weight": ours["source_embedding.weight"]}
    norms = {"self_attention": 1, "feed_forward": 2}
    for side, parts in (
        ("encoder", norms),
        ("decoder", {"self_attention": 1, "cross_attention": 2, "feed_forward": 3}),
    ):
        for number in range(job["model"][f"num_{side}_layers"]):
            here = f"transformer.{side}.layers.{number}."
            for part, norm in parts.items():
                block = f"{side}.blocks.{number}.{part}."
                for kind in ("weight", "bias"):
                    theirs[f"{here}norm{norm}.{kind}"] = ours[f"{block}norm.{kind}"]
                    theirs |= _sublayer(ours, f"{block}sublayer.", here, kind)
    model.load_state_dict({**theirs, "positions": model.positions})


def _sublayer(ours: dict[str, Tensor], block: str, here: str, kind: str) -> dict[str, Tensor]:
    if "feed_forward" in block:
        return {
            f"{here}linear1.{kind}": ours[f"{block}inner.{kind}"],
            f"{here}linear2.{kind}": ours[f"{block}outer.{kind}"],
        }
    name = "multihead_attn" if "cross" in block else "self_attn"
    three = [ours[f"{block}{role}.{kind}"] for role in ("query", "key", "value")]
    return {
        f"{here}{name}.in_proj_{kind}": torch.cat(three),
        f"{here}{name}.out_proj.{kind}": ours[f"{block}output.{kind}"],
    }


def _loss(model: nn.Module, batch: Arrays) -> Tensor:
    return smoothed_loss(model(batch.source, batch.target), batch.labels)


if __name__ == "__main__":
    model = Translation()
    if job["weights"]:
        load_ours(model, job["weights"])
    train(model, _loss, library=f"torch {torch.__version__}")
