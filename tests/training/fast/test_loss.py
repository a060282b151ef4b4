"""The chunked, projected loss against the plain formula, gradients included."""

import pytest
import torch
from torch.nn import functional as F

from glassformer.training.fast.loss import CHUNK_ROWS, LARGE_CHUNK_ROWS, projected_cross_entropy
from glassformer.training.loss import label_smoothed_cross_entropy
from tests.tables import every

VOCAB, D_MODEL = 13, 7


def projection(rows, *, bias, dtype, seed=1):
    torch.manual_seed(seed)
    states = torch.randn(rows, D_MODEL, dtype=dtype, requires_grad=True)
    weight = torch.randn(VOCAB, D_MODEL, dtype=dtype, requires_grad=True)
    vector = torch.randn(VOCAB, dtype=dtype, requires_grad=True) if bias else None
    return states, weight, vector, torch.randint(1, VOCAB, (rows,))


@every("rows", [1, 255, 256, 257, 600])
@every("smoothing", [0.0, 0.1])
@every("bias", [False, True])
@every(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
def test_the_chunked_form_equals_the_plain_one(rows, smoothing, bias, dtype, tolerance):
    assert CHUNK_ROWS == 256  # what the numbers of rows here stand around
    states, weight, vector, labels = projection(rows, bias=bias, dtype=dtype)
    inputs = [states, weight, vector] if bias else [states, weight]
    logits = F.linear(states, weight, vector)
    expected = label_smoothed_cross_entropy(logits, labels, smoothing=smoothing, reduction="sum")
    expected_plain = F.cross_entropy(logits, labels, reduction="sum")

    loss, plain = projected_cross_entropy(states, weight, vector, labels, smoothing=smoothing)

    assert loss.item() == pytest.approx(expected.item(), rel=tolerance)
    assert plain.item() == pytest.approx(expected_plain.item(), rel=tolerance)
    # A factor on the loss, as accumulation puts there, must reach the gradients.
    found = torch.autograd.grad(loss / 3, inputs)
    wanted = torch.autograd.grad(expected / 3, inputs)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=10 * tolerance)


def test_large_logits_do_not_overflow():
    states, weight, _, labels = projection(9, bias=False, dtype=torch.float32)

    loss, plain = projected_cross_entropy(1e3 * states, weight, None, labels)

    expected = F.cross_entropy(1e3 * states @ weight.t(), labels, reduction="sum")
    assert plain.item() == pytest.approx(expected.item(), rel=1e-5)
    assert torch.isfinite(loss)


@every("hidden", [1, 4, VOCAB - 1])
def test_without_smoothing_a_part_of_the_vocabulary_may_be_hidden(hidden):
    states, weight, bias, labels = projection(9, bias=True, dtype=torch.float64)
    with torch.no_grad():
        bias[:hidden] = -torch.inf
    labels.clamp_(min=hidden)
    inputs = [states, weight, bias]
    losses = [
        F.cross_entropy(F.linear(*inputs), labels, reduction="sum"),
        label_smoothed_cross_entropy(F.linear(*inputs), labels, smoothing=0.0, reduction="sum"),
        projected_cross_entropy(*inputs, labels, smoothing=0.0)[0],
    ]

    expected, plain, fast = ([loss, *torch.autograd.grad(loss, inputs)] for loss in losses)

    torch.testing.assert_close(plain, expected)
    torch.testing.assert_close(fast, expected)


def test_no_rows_are_zero():
    states, weight, vector, labels = projection(0, bias=True, dtype=torch.float32)

    loss, plain = projected_cross_entropy(states, weight, vector, labels)

    assert (loss.item(), plain.item()) == (0, 0)
    for gradient in torch.autograd.grad(loss, [weight, vector]):
        assert gradient.abs().max() == 0


def test_the_second_loss_carries_no_gradient():
    states, weight, _, labels = projection(3, bias=False, dtype=torch.float32)

    loss, plain = projected_cross_entropy(states, weight, None, labels)

    assert loss.requires_grad
    assert not plain.requires_grad


def test_no_gradient_is_computed_where_none_is_wanted(monkeypatch):
    states, weight, _, labels = projection(3, bias=False, dtype=torch.float32)
    from glassformer.training.fast import loss as module

    asked = []
    inner = module._sums_and_gradients

    def watched(*arguments, wanted):
        asked.append(wanted)
        return inner(*arguments, wanted=wanted)

    monkeypatch.setattr(module, "_sums_and_gradients", watched)
    with torch.inference_mode():
        projected_cross_entropy(states, weight, None, labels)
    projected_cross_entropy(states, weight, None, labels)

    assert asked == [False, True]


def test_bfloat16_states_are_near_float32_and_wide_weights_have_wide_gradients():
    states, weight, vector, labels = projection(2_100, bias=True, dtype=torch.float32)
    assert LARGE_CHUNK_ROWS == 2_048  # so there are two chunks
    inputs = [states, weight, vector]
    exact, _ = projected_cross_entropy(*inputs, labels)
    rough, _ = projected_cross_entropy(states.bfloat16(), weight, vector, labels)

    assert rough.item() != exact.item()
    assert rough.item() == pytest.approx(exact.item(), rel=0.01)
    found = torch.autograd.grad(rough, inputs)
    for ours, theirs in zip(found, torch.autograd.grad(exact, inputs), strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() < 0.02 * theirs.norm()
    # Through bfloat16 each number would have 8 significant bits.
    assert not torch.equal(found[1], found[1].bfloat16().float())


@every("bias", [False, True])
@every("smoothing", [0.0, 0.1])
def test_rows_with_a_negative_label_count_nothing(bias, smoothing):
    states, weight, vector, labels = projection(300, bias=bias, dtype=torch.float64)
    counted = torch.arange(300) % 7 > 0
    inputs = [states, weight, vector] if bias else [states, weight]
    expected, found = (
        projected_cross_entropy(rows, weight, vector, ids, smoothing=smoothing)
        for rows, ids in (
            (states[counted], labels[counted]),
            (states, torch.where(counted, labels, -1)),
        )
    )

    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found[0], inputs), torch.autograd.grad(expected[0], inputs)
    )
