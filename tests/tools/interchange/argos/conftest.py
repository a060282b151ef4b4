"""A tiny random bundle with one vocabulary, which a package needs."""

import pytest
import torch

from glassformer.bundle import Bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.model.transformer import Transformer

LINES = [
    "A dog runs across the grass.",
    "Ein Hund läuft über das Gras.",
    "Two men sit in the snow_field; one sings.",
    "Zwei Männer sitzen im Schnee.",
] * 3


@pytest.fixture(scope="session")
def joint_directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("joint") / "en-de"
    tokenizer = train_tokenizer(LINES, vocab_size=350)
    size = tokenizer.vocab_size
    torch.manual_seed(3)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 24, "max_length": 200}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    config = ModelConfig(
        source_vocab_size=size, target_vocab_size=size, output_bias=True, **sizes, **layers
    )
    model = Transformer(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.5)
        model.output_bias[tokenizer.eos_id] = 4.0
        model.output_bias[:3] = -50.0  # no special symbol: the engines differ there
    save_bundle(Bundle(model, tokenizer, tokenizer, ("en", "de")), directory)
    return directory
