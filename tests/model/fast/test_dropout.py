"""Dropout from random bytes: its share, its mean, its independence, its seed."""

import pytest
import torch
from torch import nn

from glassformer.model.fast.dropout import ByteDropout
from tests.tables import every

COUNT = 1 << 20


def kept(p: float, *shape: int, seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    return ByteDropout(p)(torch.ones(shape))


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_the_share_is_p_to_the_nearest_256th_and_the_mean_stays(p):
    out = kept(p, COUNT)
    share = round(256 * p) / 256
    spread = (share * (1 - share) / COUNT) ** 0.5
    assert (out == 0).double().mean().item() == pytest.approx(share, abs=5 * spread)
    assert out.double().mean().item() == pytest.approx(1, abs=5 * spread / (1 - share))
    assert out.unique().tolist() == [0.0, pytest.approx(1 / (1 - share), rel=1e-6)]


def test_every_byte_of_a_word_drops_the_same_share():
    dropped = (kept(0.1, COUNT // 8, 8) == 0).double().mean(0)
    assert ((dropped - 26 / 256).abs() < 0.005).all()


@every("distance", [1, 2, 7, 8, 64, 1024])
def test_elements_fall_independently_of_each_other(distance):
    dropped = (kept(0.3, COUNT) == 0).double()
    dropped -= dropped.mean()
    correlation = (dropped[distance:] * dropped[:-distance]).mean() / dropped.square().mean()
    assert abs(correlation) < 5 / COUNT**0.5


def test_a_seed_repeats_and_each_call_draws_anew():
    assert kept(0.5, 3, 5, 7, seed=4).equal(kept(0.5, 3, 5, 7, seed=4))
    assert not kept(0.5, 3, 5, 7, seed=4).equal(kept(0.5, 3, 5, 7, seed=5))
    dropout, x = ByteDropout(0.5), torch.ones(101)
    assert not dropout(x).equal(dropout(x))


@every("shape", [(), (1,), (3, 5, 7), (0, 4)])
@every("dtype", [torch.float32, torch.float64])
def test_any_shape_and_type_stay(shape, dtype):
    out = ByteDropout(0.5)(torch.ones(shape, dtype=dtype))
    assert out.shape == shape
    assert out.dtype == dtype


def test_what_fell_gets_no_gradient_and_the_rest_is_scaled():
    x = torch.ones(1009, requires_grad=True)
    torch.manual_seed(0)
    out = ByteDropout(0.5)(x)
    out.sum().backward()
    assert x.grad.equal(out.detach())


def test_off_in_evaluation_and_at_zero():
    x = torch.randn(3, 5)
    assert ByteDropout(0.9).eval()(x) is x
    assert ByteDropout(0.0)(x) is x


def test_a_share_close_to_one_keeps_the_least_that_a_byte_can():
    assert kept(0.999, COUNT).unique().tolist() == [0.0, 256.0]


def test_other_types_are_dropped_too():
    torch.manual_seed(0)
    out = ByteDropout(0.5)(torch.ones(4096, dtype=torch.bfloat16))
    assert out.unique().tolist() == [0.0, 2.0]


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
def test_a_share_outside_its_range_is_refused(p):
    with pytest.raises(ValueError, match=f"at least 0 and below 1, got {p}"):
        ByteDropout(p)


def test_it_drops_as_torch_s_dropout_does_up_to_the_rounding_of_p():
    x = torch.ones(COUNT, requires_grad=True)
    for dropout in (nn.Dropout(0.25), ByteDropout(0.25)):  # 64 of 256 values
        torch.manual_seed(0)
        out = dropout(x)
        assert (out == 0).double().mean().item() == pytest.approx(0.25, abs=0.003)
        assert out.unique().tolist() == [0.0, pytest.approx(4 / 3)]
        (gradient,) = torch.autograd.grad(out.sum(), x)
        assert gradient.equal(out.detach())
