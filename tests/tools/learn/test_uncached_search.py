"""A search without a cache finds what the search with a cache finds."""

import pytest
import torch

from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.tools.learn.parts import mistaken_parts, own_parts
from glassformer.tools.learn.uncached_search import Uncached
from tests.own_parts import rebuilt


@pytest.fixture
def model():
    torch.manual_seed(1)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16}
    config = ModelConfig(source_vocab_size=11, target_vocab_size=13, max_length=32, **sizes)
    return Transformer(config).eval()


def logits_of_steps(model):
    """The logits of three steps for two sentences; the rows change places after the first."""
    state = model.start(model.encode(torch.tensor([[5, 6, 7], [8, 9, 0]])))
    first, state = model.step(torch.tensor([2, 2]), state)
    state = state.select(torch.tensor([1, 0]))
    second, state = model.step(torch.tensor([4, 5]), state)
    third, _ = model.step(torch.tensor([6, 7]), state)
    return torch.stack((first, second, third))


def test_it_gives_the_logits_of_the_cached_search(model):
    torch.testing.assert_close(logits_of_steps(Uncached(model)), logits_of_steps(model))


@pytest.mark.parametrize(
    "mistake", ["decoder-cross-missing", "heads-output-missing", "causal-reversed"]
)
def test_a_mistake_that_the_cached_search_leaves_out_acts(model, mistake):
    parts = own_parts(mistaken_parts([mistake]))
    mistaken = parts.decoder(rebuilt(model, parts))
    assert not torch.allclose(logits_of_steps(mistaken), logits_of_steps(model))
