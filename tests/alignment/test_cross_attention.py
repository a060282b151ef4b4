"""The observed weights are those that a model's own blocks compute, whatever these look like."""

from dataclasses import replace

import pytest
import torch

from glassformer.alignment.cross_attention import UnalignedError, cross_weights
from glassformer.config import ModelConfig
from glassformer.model.attention import scaled_dot_product_attention
from glassformer.parts import FAST, PLAIN
from tests import own_parts

SIZES = {"d_model": 24, "num_heads": 3, "d_ff": 8, "num_encoder_layers": 1, "max_length": 30}
CONFIG = ModelConfig(source_vocab_size=17, target_vocab_size=19, num_decoder_layers=3, **SIZES)
SOURCE = torch.tensor([[5, 6, 7, 8, 3], [5, 9, 3, 0, 0]])
TARGET = torch.tensor([[2, 4, 5], [2, 11, 0]])
ALIGNED = {
    "stock": own_parts.with_blocks(own_parts.Stock),
    "shared": own_parts.with_blocks(own_parts.Stock, shared=True),
    "memory first": own_parts.with_blocks(own_parts.MemoryFirst),
    "parallel": own_parts.with_blocks(own_parts.Parallel),
    "locked": own_parts.with_blocks(own_parts.Locked),
}


@pytest.mark.parametrize("name", ALIGNED)
@pytest.mark.parametrize("width", [5, 3], ids=["wider", "square"])
def test_the_weights_are_those_that_the_block_computes(name, width):
    seen = []

    def recording(query, key, value, mask=None):
        output, weights = scaled_dot_product_attention(query, key, value, mask)
        seen.append(weights)
        return output, weights

    torch.manual_seed(3)
    model = ALIGNED[name](CONFIG, replace(PLAIN, attention=recording)).eval()
    with torch.no_grad():
        model(SOURCE[:, :width], TARGET)
    first = 0 if name in ("memory first", "parallel") else 1
    expected = seen[1:][first::2]  # seen[0] is the encoder's

    for layers in ([0], [1, 2]):
        found = cross_weights(model, SOURCE[:, :width], TARGET, layers)
        torch.testing.assert_close(found, [expected[layer] for layer in layers])


def test_the_model_stays_as_it_was():
    model = ALIGNED["parallel"](CONFIG, FAST).eval()
    cross_weights(model, SOURCE, TARGET, [0])
    functions = {vars(module).get("attention") for module in model.modules()}
    assert functions == {None, FAST.attention}


@pytest.mark.parametrize(
    ("block", "attention", "expected"),
    [
        (own_parts.FirstState, PLAIN.attention, "Transformer has no cross-attention of 3 heads"),
        (own_parts.ReadsTwice, PLAIN.attention, "Transformer has no cross-attention of 3 heads"),
        (own_parts.Stock, own_parts.kernel, "kernel returns None for the weights"),
    ],
)
def test_a_model_that_cannot_align_says_so(block, attention, expected):
    parts = replace(PLAIN, attention=attention)
    model = own_parts.with_blocks(block)(CONFIG, parts).eval()
    with pytest.raises(UnalignedError, match=expected):
        cross_weights(model, SOURCE, TARGET, [0])
