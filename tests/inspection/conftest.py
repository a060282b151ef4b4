"""Translators to look into: one of random weights, one that has learnt known probabilities."""

from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import cross_entropy

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.tokenizer import train_tokenizer
from glassformer.model.transformer import Transformer
from glassformer.translator import Translator

SOURCES = ["A dog runs across the grass.", "Two men sit in the snow; one sings.", "An old hat."]
TARGETS = ["Ein Hund läuft über das Gras.", "Zwei Männer sitzen im Schnee.", "Ein alter Hut."]

# What "a b" means, and how often: the likeliest first word does not begin the likeliest answer.
MEANINGS = {"up on": 7, "up at": 5, "down by": 8}


@pytest.fixture(scope="session")
def nonsense() -> Callable[..., Translator]:
    """A translator with 2 + 2 layers whose vocabularies differ; its answers are nonsense."""

    def make(**options: object) -> Translator:
        source = train_tokenizer(SOURCES * 3, vocab_size=310)
        target = train_tokenizer(TARGETS * 3, vocab_size=330)
        sizes = {"d_model": 14, "num_heads": 2, "d_ff": 19}
        layers = {"num_encoder_layers": 2, "num_decoder_layers": 2, "tying": "none"}
        sizes |= {"source_vocab_size": source.vocab_size, "target_vocab_size": target.vocab_size}
        torch.manual_seed(7)
        model = Transformer(ModelConfig(**(sizes | layers | {"output_bias": True} | options)))
        with torch.no_grad():
            for weight in model.parameters():  # bolder, so that the answers differ with the texts
                weight.mul_(2.5).add_(0.1 * torch.randn_like(weight))
            model.output_bias[target.eos_id] = 5.0
            model.output_bias[4:260] = -20.0  # the bytes, which would make no text
        model.eval().requires_grad_(False)
        return Translator(Bundle(model, source, target, ("en", "de")))

    return make


@pytest.fixture(scope="session")
def ambiguous() -> Translator:
    """It has learnt that "a b" means what MEANINGS says, each as often as there."""
    tokenizer = train_tokenizer(["a b", *MEANINGS] * 9, vocab_size=300)
    torch.manual_seed(1)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 24, "dropout": 0.0}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    vocabulary = dict.fromkeys(("source_vocab_size", "target_vocab_size"), tokenizer.vocab_size)
    model = Transformer(ModelConfig(**(sizes | layers | vocabulary)))
    source = torch.tensor([[*tokenizer.encode("a b"), tokenizer.eos_id]] * len(MEANINGS))
    rows = [[tokenizer.bos_id, *tokenizer.encode(one), tokenizer.eos_id] for one in MEANINGS]
    target = torch.nn.utils.rnn.pad_sequence(
        list(map(torch.tensor, rows)), batch_first=True, padding_value=tokenizer.pad_id
    )
    share = torch.tensor([*MEANINGS.values()]) / sum(MEANINGS.values())
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        logits = model(source, target[:, :-1]).transpose(1, 2)
        loss = cross_entropy(logits, target[:, 1:], ignore_index=tokenizer.pad_id, reduction="none")
        optimiser.zero_grad()
        (share @ loss.sum(dim=1)).backward()
        optimiser.step()
    return Translator(Bundle(model.eval().requires_grad_(False), tokenizer, tokenizer))
