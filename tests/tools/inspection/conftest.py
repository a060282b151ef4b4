"""Translators to look into: half-taught, with known probabilities, random."""

from collections.abc import Callable, Sequence
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.tokenizer import Tokenizer
from glassformer.model.transformer import Transformer
from glassformer.translator import Translator

SOURCES = ["A dog runs across the grass.", "Two men sit in the snow; one sings.", "An old hat."]
TARGETS = ["Ein Hund läuft über das Gras.", "Zwei Männer sitzen im Schnee.", "Ein alter Hut."]

# What "a b" means, and how often: the likeliest first word does not begin the likeliest answer.
MEANINGS = {"up on": 0.35, "up at": 0.25, "down by": 0.4}


@pytest.fixture(scope="session")
def beginner() -> Callable[..., Translator]:
    """A translator with 2 + 2 layers, two vocabularies and three sentences, half learnt.

    Equal options give the same one: nobody may change it.
    """

    @cache
    def make(**options: object) -> Translator:
        source = train_tokenizer(SOURCES * 3, vocab_size=310)
        target = train_tokenizer(TARGETS * 3, vocab_size=330)
        sizes = {"d_model": 14, "num_heads": 2, "d_ff": 19, "dropout": 0.0, "tying": "none"}
        sizes |= {"source_vocab_size": source.vocab_size, "target_vocab_size": target.vocab_size}
        layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
        torch.manual_seed(7)
        model = Transformer(ModelConfig(**(sizes | layers | {"output_bias": True} | options)))
        taught(model, ids(source, SOURCES), ids(target, TARGETS), updates=40)
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
    share = torch.tensor([*MEANINGS.values()])
    taught(model, ids(tokenizer, ["a b"] * 3), ids(tokenizer, [*MEANINGS]), share, updates=60)
    return Translator(Bundle(model, tokenizer, tokenizer))


@pytest.fixture(scope="module")
def parts():
    """A random model with a tokenizer of its own: what attention_of takes."""
    tokenizer = train_tokenizer(["two men walk", "zwei Männer gehen"], vocab_size=320)
    torch.manual_seed(3)
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 8, "max_length": 20}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 1, "dropout": 0.5}
    vocabulary = dict.fromkeys(("source_vocab_size", "target_vocab_size"), tokenizer.vocab_size)
    model = Transformer(ModelConfig(**(sizes | layers | vocabulary)))
    return Bundle(model, tokenizer, tokenizer)


def ids(tokenizer: Tokenizer, texts: Sequence[str]) -> Tensor:
    rows = [torch.tensor([*tokenizer.encode(text), tokenizer.eos_id]) for text in texts]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def taught(
    model: Transformer, source: Tensor, target: Tensor, share: Tensor | None = None, *, updates: int
) -> None:
    """Adam on these pairs, which count as much as their ``share`` says."""
    share = torch.full((len(source),), 1 / len(source)) if share is None else share
    read = torch.cat([torch.full_like(target[:, :1], 2), target[:, :-1]], dim=1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(updates):
        logits = model(source, read).transpose(1, 2)
        loss = nn.functional.cross_entropy(logits, target, ignore_index=0, reduction="none")
        optimiser.zero_grad()
        (share @ loss.sum(dim=1)).backward()
        optimiser.step()
    model.eval().requires_grad_(False)
