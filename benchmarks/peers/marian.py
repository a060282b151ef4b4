"""Hugging Face's ``MarianMTModel``: post-norm, sinusoidal positions, one embedding matrix."""

import torch
import transformers
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from benchmarks.peers.measure import Arrays, job
from benchmarks.peers.torch_training import smoothed_loss, train

__all__ = ["build"]


def build() -> MarianMTModel:
    """A new model of the job's sizes; its attention is torch's fused form, the default."""
    sizes = job["model"]
    transformers.logging.set_verbosity_error()
    return MarianMTModel(
        MarianConfig(
            vocab_size=sizes["vocab_size"],
            d_model=sizes["d_model"],
            encoder_layers=sizes["num_encoder_layers"],
            decoder_layers=sizes["num_decoder_layers"],
            encoder_attention_heads=sizes["num_heads"],
            decoder_attention_heads=sizes["num_heads"],
            encoder_ffn_dim=sizes["d_ff"],
            decoder_ffn_dim=sizes["d_ff"],
            dropout=sizes["dropout"],
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=sizes["max_length"],
            pad_token_id=sizes["pad_id"],
            bos_token_id=sizes["bos_id"],
            eos_token_id=sizes["eos_id"],
            decoder_start_token_id=sizes["bos_id"],
            use_cache=False,
        )
    )


def _loss(model: nn.Module, batch: Arrays) -> Tensor:
    pad_id = job["model"]["pad_id"]
    output = model(
        input_ids=batch.source,
        attention_mask=(batch.source != pad_id).long(),
        decoder_input_ids=batch.target,
    )
    return smoothed_loss(output.logits, batch.labels)


if __name__ == "__main__":
    name = f"transformers {transformers.__version__}, torch {torch.__version__}"
    train(build(), _loss, library=name)
