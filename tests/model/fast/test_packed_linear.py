"""A weight arranged for decoding gives what `F.linear` gives."""

import pytest
import torch
from torch.nn import functional as F

from glassformer.model.fast import packed_linear as module
from glassformer.model.fast.packed_linear import product
from tests.tables import every

SMALL, LARGE = (24, 16), (2048, 512)  # the large one is packed in float32 too


def close(dtype):
    return {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-4}


@every("rows", [0, 1, 2, 40])
@every("dtype", [torch.float32, torch.bfloat16, torch.float64])
@every("shape", [SMALL, LARGE])
@every("with_bias", [False, True])
def test_it_is_the_linear_product(shape, dtype, rows, with_bias):
    draw = torch.Generator().manual_seed(rows)
    weight = torch.randn(shape, generator=draw).mul(shape[1] ** -0.5).to(dtype)
    bias = torch.randn(shape[0], generator=draw).to(dtype) if with_bias else None
    x = torch.randn(1, rows, shape[1], generator=draw).to(dtype)

    found = product(weight, bias)(x)

    assert found.shape == (1, rows, shape[0])
    torch.testing.assert_close(found, F.linear(x, weight, bias), **close(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_without_the_operators_it_is_the_same(dtype, monkeypatch):
    weight, x = torch.eye(*LARGE).to(dtype), torch.randn(3, LARGE[1]).to(dtype)
    packed = product(weight, None)(x)
    monkeypatch.setattr(module, "_packed", lambda *_: 1 / 0)
    monkeypatch.setattr(module, "_can_pack", lambda _: False)
    torch.testing.assert_close(product(weight, None)(x), packed)


def test_operators_that_fail_are_not_used(monkeypatch):
    def fail(*_):
        raise RuntimeError("mkldnn is not available")

    module._can_pack.cache_clear()
    monkeypatch.setattr(module, "_packed", fail)
    assert not module._can_pack(torch.float32)
    module._can_pack.cache_clear()


def test_the_weight_is_left_as_it_is():
    weight = torch.nn.Parameter(torch.randn(LARGE))
    before, stride = weight.detach().clone(), weight.stride()
    found = product(weight, None)(torch.randn(2, LARGE[1]))
    assert not found.requires_grad
    assert weight.equal(before)
    assert weight.stride() == stride
