"""A model that copies: no beam loses a sentence that greedy search has right, in either engine."""

import pytest
import torch
from torch import nn

from glassformer.bundle import Bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.decoding.engine import TorchEngine
from glassformer.model.transformer import Transformer
from glassformer.translator import Translator

DIGITS = ["1 2 3 4 5 6 7 8", "9 8 7", "0"]


@pytest.fixture(scope="module")
def copying(tmp_path_factory):
    """The bundle of a model that copies `DIGITS`, each token with nearly all probability."""
    tokenizer = train_tokenizer(DIGITS * 9, vocab_size=300)
    torch.manual_seed(1)
    vocab = tokenizer.vocab_size
    sizes = {"d_model": 32, "num_heads": 2, "d_ff": 48, "dropout": 0.0, "norm": "pre"}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = Transformer(
        ModelConfig(source_vocab_size=vocab, target_vocab_size=vocab, **sizes, **layers)
    )
    rows = [torch.tensor([*tokenizer.encode(text), tokenizer.eos_id]) for text in DIGITS]
    source = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    target = torch.cat([torch.full_like(source[:, :1], tokenizer.bos_id), source[:, :-1]], dim=1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(80):
        logits = model(source, target)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), source.flatten(), ignore_index=0)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    directory = tmp_path_factory.mktemp("copying") / "bundle"
    save_bundle(Bundle(model.eval(), tokenizer, tokenizer, ("en", "de")), directory)
    return directory


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_no_beam_loses_what_greedy_search_has_right(copying, engine):
    translator = Translator.load(copying, device="cpu", engine=engine)
    greedy = translator.translate(DIGITS, beam=1)
    assert [translation.text for translation in greedy] == DIGITS
    for beam in (2, 3, 5, 10):
        wide = translator.translate(DIGITS, beam=beam)
        assert [translation.text for translation in wide] == DIGITS


def test_a_sure_model_needs_no_torch(copying, monkeypatch):
    """If no empty target and no forbidden symbol is likely, CTranslate2 answers every sentence."""
    translator = Translator.load(copying, device="cpu", engine="ctranslate2")
    monkeypatch.delattr(TorchEngine, "decode")
    for beam in (1, 2, 5):
        answers = translator.translate(DIGITS, beam=beam)
        assert [translation.text for translation in answers] == DIGITS
