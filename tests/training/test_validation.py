"""Validation: the loss without smoothing or padding, the translations in their order."""

import math

import pytest
import torch
from torch.nn import functional as F

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.batches import make_batch
from glassformer.data.corpus import Pair
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.token_store import pack
from glassformer.decoding import engine
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST
from glassformer.training.optimiser import NotFiniteError
from glassformer.training.time_limit import Deadline
from glassformer.training.validation import ValidationSet, mean_loss, validate
from glassformer.translator import Translator

PAIRS = [Pair("a b c", "c b a"), Pair("d e", "e d"), Pair("f a b c d", "d c b a f")]


@pytest.fixture(scope="module")
def tokenizers():
    tokenizer = train_tokenizer([" ".join("abcdef")] * 5, vocab_size=300)
    return tokenizer, tokenizer


@pytest.fixture(scope="module")
def model(tokenizers):
    torch.manual_seed(4)
    size = tokenizers[0].vocab_size
    return Transformer(
        ModelConfig(
            source_vocab_size=size,
            target_vocab_size=size,
            d_model=8,
            num_heads=2,
            d_ff=8,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dropout=0.5,
        )
    )


def batches_of(tokenizers, directory, rows):
    packed = pack(PAIRS, *tokenizers, directory, max_tokens=50)
    return [make_batch(packed, torch.tensor(row).numpy()) for row in rows]


@pytest.mark.parametrize("rows", [[[0, 1, 2]], [[0], [1, 2]]])
def test_the_loss_is_a_mean_over_tokens_not_over_batches(model, tokenizers, tmp_path, rows):
    model.eval()
    [whole] = batches_of(tokenizers, tmp_path / "whole", [[0, 1, 2]])
    logits = model(whole.source, whole.target).flatten(0, 1)
    expected = F.cross_entropy(logits, whole.labels.flatten(), ignore_index=0)

    found = mean_loss(model, batches_of(tokenizers, tmp_path / "cut", rows), FAST.losses)

    assert found == pytest.approx(expected.item(), rel=1e-5)


def test_no_batches_are_no_loss(model):
    assert mean_loss(model, [], FAST.losses) == 0.0


def test_validating_leaves_training_mode_and_weights(model, tokenizers, tmp_path):
    before = [weight.clone() for weight in model.parameters()]
    model.train()
    data = ValidationSet(PAIRS, batches_of(tokenizers, tmp_path / "v", [[0, 1, 2]]), tokenizers)

    found = validate(model, data, FAST)
    again = validate(model, data, FAST)

    assert model.training
    assert found == again  # dropout was off
    assert len(found.translations) == 3
    assert math.isfinite(found.loss)
    assert all(map(torch.equal, before, model.parameters()))
    assert all(weight.grad is None for weight in model.parameters())


def test_a_loss_that_is_not_finite_is_told_before_anything_is_translated(tokenizers, tmp_path):
    size = tokenizers[0].vocab_size
    sizes = {"source_vocab_size": size, "target_vocab_size": size, "d_model": 8, "num_heads": 2}
    spoilt = Transformer(ModelConfig(**sizes, num_encoder_layers=1, num_decoder_layers=1))
    with torch.no_grad():
        spoilt.source_embedding.weight.fill_(float("nan"))

    data = ValidationSet(PAIRS, batches_of(tokenizers, tmp_path / "v", [[0, 1, 2]]), tokenizers)
    with pytest.raises(NotFiniteError, match="loss nan"):
        validate(spoilt, data, FAST)


def test_the_pairs_are_translated_as_the_translator_translates_them(model, tokenizers, tmp_path):
    long = " ".join("abcdef"[i % 6] for i in range(2_500))  # more tokens than there are positions
    sources = ["a b", "", "   ", long, "d", *(pair.source for pair in PAIRS)]
    pairs = [Pair(source, "a") for source in sources]
    batches = batches_of(tokenizers, tmp_path / "v", [[0, 1, 2]])

    texts = validate(model, ValidationSet(pairs, batches, tokenizers), FAST).translations

    translator = Translator(Bundle(model.eval(), *tokenizers))
    whole = [translator.translate([source], beam=1)[0].text for source in sources]
    assert all(map(str.startswith, whole, texts))  # cut off, where they are far too long
    assert [not text.strip() for text in texts[:5]] == [False, True, True, False, False]


def test_translations_are_at_most_twice_as_long_as_the_references(
    model, tokenizers, tmp_path, monkeypatch
):
    limits = []
    inner = engine.decode_sentences
    monkeypatch.setattr(
        engine,
        "decode_sentences",
        lambda *a, **n: (limits.append(n["settings"].max_length_ratio), inner(*a, **n))[1],
    )
    pairs = [Pair("a b c d", "a"), Pair("a b", "b")]
    packed = pack(pairs, *tokenizers, tmp_path / "v", max_tokens=50)
    lengths = [packed.source.lengths, packed.target.lengths]
    batches = [make_batch(packed, torch.tensor([0, 1]).numpy())]

    validate(model, ValidationSet(pairs, batches, tokenizers), FAST)

    source, target = (sum(side) + 2 for side in lengths)  # the end symbols count
    assert limits == [pytest.approx(2 * target / source)]
    assert ValidationSet(PAIRS, [], tokenizers).longest_target == math.inf


def test_in_no_time_some_pairs_and_a_batch_stand_for_all(model, tokenizers, tmp_path):
    batches = batches_of(tokenizers, tmp_path / "v", [[0], [1, 2]])
    data = ValidationSet(PAIRS * 20, batches, tokenizers)

    whole, part = validate(model, data, FAST), validate(model, data, FAST, Deadline(-1.0))

    assert len(whole.translations) == len(whole.pairs) == 60
    assert len(part.translations) == len(part.pairs) == 16
    assert {pair.source for pair in part.pairs} == {pair.source for pair in PAIRS}
    texts = dict(zip((pair.source for pair in whole.pairs), whole.translations, strict=True))
    assert part.translations == [texts[pair.source] for pair in part.pairs]
    model.eval()
    assert part.loss == mean_loss(model, batches[:1], FAST.losses) != whole.loss
