"""Small random models: every setting of a model that a page has to know."""

from typing import Any

import torch

from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer

_SMALL = {
    "source_vocab_size": 23,
    "target_vocab_size": 23,
    "d_model": 16,
    "num_heads": 2,
    "d_ff": 24,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "max_length": 40,
}
_APART = {"source_vocab_size": 19, "target_vocab_size": 29}
MODELS: dict[str, dict[str, Any]] = {
    "post": {},
    "pre": {"norm": "pre"},
    "epsilon": {"norm": "pre", "norm_epsilon": 0.3},
    "none tied": {**_APART, "tying": "none"},
    "target tied": {**_APART, "tying": "target"},
    "embeddings tied": {"tying": "embeddings"},
    "learned positions": {
        "positions": "learned",
        "position_offset": 2,
        "source_max_length": 30,
        "embedding_norm": True,
        "norm": "pre",
    },
    "learned, no norm": {"positions": "learned"},
    "halves": {"position_layout": "halves", "position_offset": 3},
    "tensor2tensor": {"position_frequencies": "tensor2tensor", "position_layout": "halves"},
    "embedding norm": {"embedding_norm": True, "scale_embeddings": False},
    "output bias": {"output_bias": True, "scale_embeddings": False, "tying": "none"},
    "gelu": {"activation": "gelu", "norm": "pre"},
    "swish": {"activation": "swish"},
    "odd sizes": {
        **_APART,
        "d_model": 10,
        "d_ff": 13,
        "num_encoder_layers": 3,
        "num_decoder_layers": 1,
        "norm": "pre",
        "output_bias": True,
    },
    "a pair of numbers": {
        "d_model": 2,
        "num_heads": 1,
        "d_ff": 1,
        "position_frequencies": "tensor2tensor",
    },
    "other ids": {"pad_id": 11, "unk_id": 7, "bos_id": 0, "eos_id": 5, "norm": "pre"},
    "start is end": {"pad_id": 1, "unk_id": 3, "bos_id": 2, "eos_id": 2, "norm": "pre"},
    "end is hidden": {**_APART, "source_pad_id": 3, "norm": "pre"},
    "short": {"max_length": 16},
}


def random_model(name: str) -> Transformer:
    """A model whose every weight counts, biases and norms too, and whose targets end."""
    torch.manual_seed(sum(map(ord, name)))
    model = Transformer(ModelConfig(**(_SMALL | MODELS[name])))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5).add_(0.3 * torch.randn_like(weight))
        decoder, end = model.decoder, model.output_weight[model.config.eos_id]
        pre_norm = model.config.norm == "pre"
        last = decoder.norm if pre_norm else decoder.blocks[-1].feed_forward.norm
        last.bias.add_(1.5 * end / end.norm())  # the end symbol's logit rises
    return model.eval().requires_grad_(False)
