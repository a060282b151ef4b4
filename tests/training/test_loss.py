"""Label smoothing against torch's own and by hand; the chunked form against the plain one."""

import math

import pytest
import torch
from torch.nn import functional as F

from glassformer.training.loss import (
    CHUNK_ROWS,
    LARGE_CHUNK_ROWS,
    label_smoothed_cross_entropy,
    projected_cross_entropy,
)

PAD = 0
VOCAB, D_MODEL = 13, 7


def logits_and_labels(*shape, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    logits = 3 * torch.randn(*shape, VOCAB, dtype=dtype)
    labels = torch.randint(1, VOCAB, shape)
    labels[..., -1] = PAD
    return logits.requires_grad_(), labels


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_equals_torchs_cross_entropy_gradients_included(smoothing, reduction, dtype, tolerance):
    logits, labels = logits_and_labels(3, 5, dtype=dtype)

    ours = label_smoothed_cross_entropy(logits, labels, smoothing=smoothing, reduction=reduction)
    theirs = F.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten(),
        label_smoothing=smoothing,
        reduction=reduction,
        ignore_index=PAD,
    )

    assert ours.dtype == dtype
    assert ours.item() == pytest.approx(theirs.item(), rel=tolerance)
    found, wanted = (torch.autograd.grad(loss, logits)[0] for loss in (ours, theirs))
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)


def test_by_hand():
    # p = 1/2, 1/4, 1/8, 1/8, and the label is the second word: the plain loss is ln 4, and the
    # mean of -ln p over the words is (1 + 2 + 3 + 3) ln 2 / 4.
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()

    loss = label_smoothed_cross_entropy(logits, torch.tensor([1]), smoothing=0.2)

    by_hand = 0.8 * 2 * math.log(2) + 0.2 * 9 / 4 * math.log(2)
    assert loss.item() == pytest.approx(by_hand, rel=1e-6)


def test_padding_is_excluded():
    logits, labels = logits_and_labels(2, 4)
    real = labels != PAD

    whole = label_smoothed_cross_entropy(logits, labels)
    without = label_smoothed_cross_entropy(logits[real], labels[real])

    assert whole.item() == pytest.approx(without.item(), rel=1e-12)
    (gradient,) = torch.autograd.grad(whole, logits)
    assert gradient[~real].abs().max() == 0
    assert gradient[real].abs().min() > 0


def test_another_padding_id():
    logits, labels = logits_and_labels(2, 4)
    labels[labels == PAD] = 5

    ours = label_smoothed_cross_entropy(logits, labels, pad_id=5)

    theirs = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), label_smoothing=0.1, ignore_index=5
    )
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)


def test_only_padding_is_zero_not_nan():
    logits, labels = logits_and_labels(2, 3)

    loss = label_smoothed_cross_entropy(logits, torch.full_like(labels, PAD))

    assert loss.item() == 0
    assert torch.autograd.grad(loss, logits)[0].abs().max() == 0


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_a_smoothing_out_of_range_is_refused(smoothing):
    logits, labels = logits_and_labels(1, 2)
    with pytest.raises(ValueError, match=f"smoothing must be .* below 1, got {smoothing}"):
        label_smoothed_cross_entropy(logits, labels, smoothing=smoothing)


def projection(rows, *, bias, dtype, seed=1):
    torch.manual_seed(seed)
    states = torch.randn(rows, D_MODEL, dtype=dtype, requires_grad=True)
    weight = torch.randn(VOCAB, D_MODEL, dtype=dtype, requires_grad=True)
    vector = torch.randn(VOCAB, dtype=dtype, requires_grad=True) if bias else None
    return states, weight, vector, torch.randint(1, VOCAB, (rows,))


@pytest.mark.parametrize("rows", [1, 255, 256, 257, 600])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
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
    from glassformer.training import loss as module

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
