"""A search without a cache finds what the search with a cache finds."""

import pytest
import torch

from glassformer.config import ModelConfig
from glassformer.learn.parts import in_place, mistaken_parts
from glassformer.learn.uncached_search import uncached_search
from glassformer.model.transformer import Transformer


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
    expected = logits_of_steps(model)
    with uncached_search():
        torch.testing.assert_close(logits_of_steps(model), expected)
    torch.testing.assert_close(logits_of_steps(model), expected)


@pytest.mark.parametrize(
    "mistake", ["decoder-cross-missing", "heads-output-missing", "causal-reversed"]
)
def test_a_mistake_that_the_cached_search_leaves_out_acts(model, mistake):
    right = logits_of_steps(model)
    with in_place(mistaken_parts([mistake])):
        assert not torch.allclose(logits_of_steps(model), right)
