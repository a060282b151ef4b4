"""Feed-forward network and residual block against their formulas in numpy."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from glassformer.model.blocks import FeedForward, ResidualBlock

FORMULAS = {
    "relu": lambda x: np.maximum(0, x),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "swish": lambda x: x / (1 + np.exp(-x)),
}


def stream(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def layer_norm(x, norm):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    weight, bias = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    return (x - mean) / np.sqrt(variance + norm.eps) * weight + bias


def disturbed(module: nn.Module) -> nn.Module:
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return module


@pytest.mark.parametrize("activation", FORMULAS)
def test_feed_forward_is_equation_2(activation):
    network = disturbed(FeedForward(5, 13, activation=activation).double())
    x = stream(2, 3, 5)
    w1, b1, w2, b2 = (parameter.detach().numpy() for parameter in network.parameters())
    expected = FORMULAS[activation](x.numpy() @ w1.T + b1) @ w2.T + b2
    torch.testing.assert_close(network(x), torch.from_numpy(expected))


def test_feed_forward_treats_each_position_alone_and_alike():
    network, x = FeedForward(5, 13).double(), stream(2, 7, 5)
    torch.testing.assert_close(network(x[1, 4:5]), network(x)[1, 4:5])


def test_feed_forward_drops_between_the_layers_only():
    network = FeedForward(6, 512, dropout=0.5)
    nn.init.zeros_(network.inner.weight)
    nn.init.ones_(network.inner.bias)
    nn.init.eye_(network.outer.weight)
    nn.init.ones_(network.outer.bias)
    torch.manual_seed(0)
    out = network(torch.zeros(199, 6))
    assert sorted(set(out.flatten().tolist())) == [1.0, 3.0]  # 0 or 2, and the bias
    assert (network.eval()(torch.zeros(199, 6)) == 2).all()


@pytest.mark.usefixtures("own_messages")
def test_an_unknown_activation_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="activation 'silu': expected relu, gelu, swish"):
        FeedForward(4, 8, activation="silu")


@pytest.mark.parametrize("epsilon", [1e-5, 0.1])
def test_post_norm_is_the_norm_of_the_sum(epsilon):
    new_norm = partial(nn.LayerNorm, eps=epsilon)
    block = ResidualBlock(nn.Linear(5, 5), 5, norm="post", new_norm=new_norm)
    disturbed(block.double())
    x = stream(2, 3, 5)
    expected = layer_norm((x + block.sublayer(x)).detach().numpy(), block.norm)
    torch.testing.assert_close(block(x), torch.from_numpy(expected))


@pytest.mark.parametrize("epsilon", [1e-5, 0.1])
def test_pre_norm_is_the_sum_of_the_stream_and_what_read_its_norm(epsilon):
    new_norm = partial(nn.LayerNorm, eps=epsilon)
    block = ResidualBlock(nn.Linear(5, 5), 5, norm="pre", new_norm=new_norm)
    disturbed(block.double())
    x = stream(2, 3, 5)
    expected = x + block.sublayer(torch.from_numpy(layer_norm(x.numpy(), block.norm)))
    torch.testing.assert_close(block(x), expected)


def test_post_norm_is_the_default():
    block = ResidualBlock(nn.Identity(), 64)
    out = block(torch.randn(2, 3, 64))
    torch.testing.assert_close(out.mean(-1), torch.zeros(2, 3), atol=1e-6, rtol=0)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_falls_on_the_sublayer_s_output_never_on_the_stream(norm):
    torch.manual_seed(0)
    x = torch.randn(2, 37, 64)
    silent = ResidualBlock(nn.Linear(64, 64), 64, dropout=0.5, norm=norm)
    nn.init.zeros_(silent.sublayer.weight)
    nn.init.zeros_(silent.sublayer.bias)
    assert silent.train()(x).equal(silent.eval()(x))
    nn.init.ones_(silent.sublayer.bias)
    if norm == "pre":
        added = (silent.train()(x) - x).round(decimals=3)
        assert sorted(set(added.flatten().tolist())) == [0.0, 2.0]
    else:
        assert not silent.train()(x).equal(silent.eval()(x))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_block_may_call_the_sublayer_itself(norm):
    block = ResidualBlock(nn.Bilinear(5, 5, 5), 5, norm=norm).double()
    x, other = stream(2, 3, 5), 2 * stream(2, 3, 5)
    out = block.add(x, block.sublayer(block.before(x), other))
    if norm == "post":
        expected = block.norm(x + block.sublayer(x, other))
    else:
        expected = x + block.sublayer(block.norm(x), other)
    torch.testing.assert_close(out, expected)


@pytest.mark.usefixtures("own_messages")
def test_an_unknown_place_of_the_norm_is_refused():
    with pytest.raises(ValueError, match="norm 'both': expected post, pre"):
        ResidualBlock(nn.Identity(), 4, norm="both")
