"""Tiny random bundles of any config, whose answers differ and end."""

import pytest
import torch

from glassformer.bundle import Bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.model.transformer import Transformer

SOURCES = ["A dog runs across the grass.", "Two men sit in the snow; one sings.", "An old hat."] * 3
TARGETS = ["Ein Hund läuft über das Gras.", "Zwei Männer sitzen im Schnee.", "Ein alter Hut."] * 3


@pytest.fixture(scope="session")
def tokenizers():
    """Of the source, of the target; and one for both."""
    return (
        train_tokenizer(SOURCES, vocab_size=310),
        train_tokenizer(TARGETS, vocab_size=330),
        train_tokenizer(SOURCES + TARGETS, vocab_size=350),
    )


@pytest.fixture
def bundle_of(tokenizers, tmp_path):
    """Makes a bundle of these options and saves it; gives its directory."""

    def make(**options):
        source, target, both = tokenizers
        if options.get("tying") in ("three-way", "embeddings"):
            source = target = both
        sizes = {"d_model": 12, "num_heads": 3, "d_ff": 20, "max_length": 128, "tying": "none"}
        layers = {"num_encoder_layers": 2, "num_decoder_layers": 1}
        vocabulary = {
            "source_vocab_size": source.vocab_size,
            "target_vocab_size": target.vocab_size,
        }
        torch.manual_seed(11)
        model = Transformer(ModelConfig(**{**vocabulary, **sizes, **layers, **options})).eval()
        with torch.no_grad():
            for weight in model.parameters():  # no zero, no one: a weight left out would show
                weight.mul_(1.5).add_(0.3 * torch.randn_like(weight))
            if model.output_bias is not None:
                model.output_bias[target.eos_id] += 3.0
        directory = tmp_path / "bundle"
        save_bundle(Bundle(model, source, target, ("en", "de")), directory)
        return directory

    return make
