"""Label smoothing against torch's own and by hand."""

import math

import pytest
import torch
from torch.nn import functional as F

from glassformer.training.loss import label_smoothed_cross_entropy, token_accuracy
from tests.tables import every

PAD = 0
VOCAB = 13


def logits_and_labels(*shape, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    logits = 3 * torch.randn(*shape, VOCAB, dtype=dtype)
    labels = torch.randint(1, VOCAB, shape)
    labels[..., -1] = PAD
    return logits.requires_grad_(), labels


@every("smoothing", [0.0, 0.1, 0.4])
@every("reduction", ["mean", "sum"])
@every(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
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
    with pytest.raises(ValueError, match=f"below 1 as smoothing, got {smoothing}"):
        label_smoothed_cross_entropy(logits, labels, smoothing=smoothing)


@every("shape", [(2,), (7,), (3, 5)])
@every("pad_id", [PAD, 4, -100])
def test_accuracy_is_the_share_of_right_labels_that_are_not_padding(shape, pad_id):
    logits, labels = logits_and_labels(*shape)
    labels[..., -1] = pad_id
    pairs = zip(
        logits.reshape(-1, VOCAB).argmax(dim=-1).tolist(), labels.flatten().tolist(), strict=True
    )
    right = [guess == label for guess, label in pairs if label != pad_id]
    expected = sum(right) / len(right)
    assert token_accuracy(logits, labels, pad_id=pad_id) == expected


def test_an_accuracy_of_nothing_is_an_error():
    logits, labels = logits_and_labels(3, 5)
    with pytest.raises(ValueError, match="token_accuracy: each label is pad_id 0: give labels"):
        token_accuracy(logits, torch.full_like(labels, PAD))
    broken = logits.detach().index_fill(-1, torch.tensor([7]), math.nan)
    with pytest.raises(ValueError, match="token_accuracy: a logit is NaN: look for NaN"):
        token_accuracy(broken, labels)
    beside = torch.where((labels == PAD)[..., None], math.nan, logits)
    assert token_accuracy(beside, labels) == token_accuracy(logits, labels)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((4, 3, VOCAB), (1, 3)), r"logits \(4, 3, 13\) and labels \(1, 3\): give labels of the"),
        (((4, 3), (4, 3, VOCAB)), r"logits \(4, 3\) and labels \(4, 3, 13\)"),
    ],
)
@pytest.mark.usefixtures("own_messages")
def test_logits_and_labels_must_be_pairs(shapes, message):
    logits, labels = torch.zeros(shapes[0]), torch.ones(shapes[1], dtype=torch.int64)
    for call in (label_smoothed_cross_entropy, token_accuracy):
        with pytest.raises(ValueError, match=message):
            call(logits, labels)


@pytest.mark.parametrize("label", [-100, VOCAB])
def test_a_label_outside_the_vocabulary_is_named(label):
    with pytest.raises(ValueError, match=f"labels: id {label} is outside the vocabulary of 13"):
        label_smoothed_cross_entropy(torch.zeros(2, VOCAB), torch.tensor([1, label]))


@pytest.mark.usefixtures("own_messages")
def test_a_reduction_that_it_lacks_is_refused():
    with pytest.raises(ValueError, match="reduction 'none': expected 'mean' or 'sum'"):
        label_smoothed_cross_entropy(torch.zeros(2, 3), torch.tensor([1, 2]), reduction="none")
