"""Small models for the tests: axes are primes, no parameter has a value that hides a fault."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer

SIZES = {
    "source_vocab_size": 23,
    "target_vocab_size": 23,
    "d_model": 14,
    "num_heads": 2,
    "d_ff": 19,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
    "dropout": 0.1,
    "max_length": 31,
}


@pytest.fixture(scope="session")
def build() -> Callable[..., Transformer]:
    """A float64 model in evaluation mode; biases and norms are not left at 0 and 1."""

    def make(**options: object) -> Transformer:
        torch.manual_seed(7)
        model = Transformer(ModelConfig(**(SIZES | options))).double().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
        return model

    return make


@pytest.fixture(scope="session")
def sentences() -> Callable[..., Tensor]:
    """Random tokens of the given lengths, filled up with pad 0 to the longest or to ``width``."""

    def make(*lengths: int, width: int | None = None, seed: int = 3) -> Tensor:
        torch.manual_seed(seed)
        rows = torch.randint(4, 23, (len(lengths), width or max(lengths)))
        for row, length in zip(rows, lengths, strict=True):
            row[length:] = 0
        return rows

    return make
