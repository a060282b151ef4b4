"""The model runs where torch traces it: no check depends on the numbers in a tensor."""

import pytest
import torch

from glassformer import ModelConfig, Transformer


@pytest.fixture(scope="module")
def model():
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    return Transformer(
        ModelConfig(source_vocab_size=31, target_vocab_size=29, **sizes, **layers)
    ).eval()


TOKENS = (torch.tensor([[4, 5, 6], [7, 8, 9]]), torch.tensor([[2, 4], [2, 5]]))


def test_export(model):
    exported = torch.export.export(model, TOKENS).module()
    torch.testing.assert_close(exported(*TOKENS), model(*TOKENS))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap(model):
    alone = torch.vmap(lambda source, target: model(source[None], target[None])[0])
    torch.testing.assert_close(alone(*TOKENS), model(*TOKENS))
