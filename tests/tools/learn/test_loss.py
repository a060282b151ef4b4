"""The loss lesson on solutions as people write them: right ones pass, wrong ones are named."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from glassformer.tools.learn.check import measure
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson


def verdict_on(function):
    judge = Judge.of(lesson("loss"), "label_smoothed_cross_entropy")
    solution = SimpleNamespace(label_smoothed_cross_entropy=function)
    return judge.verdict(measure(judge.probes, solution))


def loops(logits, labels, *, smoothing=0.1, pad_id=0):
    total, count = torch.zeros((), dtype=logits.dtype), 0
    for sentence, words in zip(logits, labels, strict=True):
        for scores, word in zip(sentence, words, strict=True):
            if word == pad_id:
                continue
            surprise = torch.logsumexp(scores, 0) - scores
            shares = torch.full_like(surprise, smoothing / len(surprise))
            shares[word] += 1 - smoothing
            total = total + torch.einsum("v,v->", shares, surprise)
            count += 1
    return total / max(count, 1)


def one_hot(logits, labels, *, smoothing=0.1, pad_id=0):
    vocab = logits.shape[-1]
    target = F.one_hot(labels, vocab) * (1 - smoothing) + smoothing / vocab
    target[labels == pad_id] = 0
    loss = -(target * F.log_softmax(logits, -1)).sum()
    return loss / max((labels != pad_id).sum().item(), 1)


def empty_first(logits, labels, *, smoothing=0.1, pad_id=0):
    """Right: without a label it is a new zero, which backward() accepts."""
    real = labels != pad_id
    if not real.any():
        return torch.zeros((), requires_grad=True)
    return F.cross_entropy(logits[real], labels[real], label_smoothing=smoothing)


@pytest.mark.parametrize("solution", [loops, one_hot, empty_first])
def test_unusual_right_solutions_pass(solution):
    assert verdict_on(solution).outcome == "right"


def torch_alone(logits, labels, *, smoothing=0.1, pad_id=0):
    return F.cross_entropy(
        logits.view(-1, logits.size(-1)),
        labels.view(-1),
        ignore_index=pad_id,
        label_smoothing=smoothing,
    )


def torch_transposed_without_pad(x, y, *, smoothing=0.1, **_):
    return F.cross_entropy(x.transpose(1, 2), y, label_smoothing=smoothing)


def torch_zeros_for_padding(x, y, *, smoothing=0.1, pad_id=0):
    loss = F.cross_entropy(
        x.transpose(1, 2), y, ignore_index=pad_id, label_smoothing=smoothing, reduction="none"
    )
    return loss.mean()


def of_probabilities(logits, labels, *, smoothing=0.1, pad_id=0):
    probabilities = torch.softmax(logits, dim=-1)
    keep = labels != pad_id
    if not keep.any():
        return torch.tensor(0.0, dtype=logits.dtype)
    return F.cross_entropy(probabilities[keep], labels[keep], label_smoothing=smoothing)


def kullback_leibler(logits, labels, *, smoothing=0.1, pad_id=0):
    vocab = logits.size(-1)
    target = torch.full_like(logits, smoothing / (vocab - 2))
    target.scatter_(-1, labels.unsqueeze(-1), 1 - smoothing)
    target[..., pad_id] = 0
    target[labels == pad_id] = 0
    losses = -(target * logits.log_softmax(-1)).sum(-1)
    return losses.sum() / (labels != pad_id).sum().clamp(min=1)


def numpy_habits(logits, labels, *, smoothing=0.1, pad_id=0):
    scores = logits.detach().numpy()
    scores = scores - scores.max(-1, keepdims=True)
    log_p = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    nll = -np.take_along_axis(log_p, labels.numpy()[..., None], -1)[..., 0]
    each = (1 - smoothing) * nll - smoothing * log_p.mean(-1)
    real = labels.numpy() != pad_id
    return float((each * real).sum() / max(real.sum(), 1))


def sentence_by_sentence(logits, labels, *, smoothing=0.1, pad_id=0):
    means = []
    for sentence, words in zip(logits, labels, strict=True):
        keep = words != pad_id
        log_p = sentence[keep].log_softmax(-1)
        nll = -log_p[torch.arange(len(log_p)), words[keep]]
        loss = (1 - smoothing) * nll - smoothing * log_p.mean(-1)
        means.append(loss.sum() / keep.sum().clamp(min=1))
    return torch.stack(means).mean()


def smooth_part_unmasked(lprobs, target, *, smoothing=0.1, pad_id=0):
    lprobs = lprobs.log_softmax(-1)
    real = target != pad_id
    nll = -lprobs.gather(-1, target[..., None])[..., 0] * real
    smooth = -lprobs.mean(-1)
    return ((1 - smoothing) * nll + smoothing * smooth).sum() / real.sum().clamp(min=1)


def own_softmax(logits, labels, *, smoothing=0.1, pad_id=0):
    e = torch.exp(logits)
    logp = torch.log(e / e.sum(-1, keepdim=True))
    mask = (labels != pad_id).double()
    nll = -torch.gather(logp, 2, labels.unsqueeze(2)).squeeze(2)
    loss = nll * (1 - smoothing) - logp.sum(2) * (smoothing / logp.shape[2])
    return (loss * mask).sum() / mask.sum().clamp(min=1)


@pytest.mark.parametrize(
    ("solution", "mistake"),
    [
        (torch_alone, ("loss-empty-nan",)),
        (torch_transposed_without_pad, ("padding-counted",)),
        (torch_zeros_for_padding, ("padding-in-mean",)),
        (of_probabilities, ("softmax-twice",)),
        (kullback_leibler, ("smoothing-without-pad",)),
        (numpy_habits, ("loss-detached",)),
        (sentence_by_sentence, ("mean-of-sentences",)),
        (smooth_part_unmasked, ("padding-smoothed",)),
        (own_softmax, ("log-of-softmax",)),
    ],
)
def test_wrong_solutions_are_named(solution, mistake):
    verdict = verdict_on(solution)
    assert verdict.mistakes == (mistake,), verdict.lines


def epsilon_in_the_logarithm(logits, labels, *, smoothing=0.1, pad_id=0):
    p = torch.softmax(logits, -1) + 1e-8
    real = labels != pad_id
    nll = -p.log().gather(-1, labels[..., None])[..., 0]
    loss = (1 - smoothing) * nll - smoothing * p.log().mean(-1)
    return (loss * real).sum() / real.sum().clamp(min=1)


def brier(logits, labels, *, smoothing=0.1, pad_id=0):
    wanted = F.one_hot(labels, logits.size(-1)) * (1 - smoothing) + smoothing / logits.size(-1)
    real = labels != pad_id
    return ((logits.softmax(-1) - wanted) ** 2).sum(-1)[real].sum() / real.sum().clamp(min=1)


@pytest.mark.parametrize("solution", [epsilon_in_the_logarithm, brier])
def test_unknown_mistakes_get_no_name(solution):
    verdict = verdict_on(solution)
    assert verdict.outcome in ("law", "difference")
    assert not verdict.mistakes


def test_the_worked_numbers_of_the_lesson():
    right = lesson("loss")
    assert "0.739" in right.template
    from glassformer import label_smoothed_cross_entropy

    logits = torch.tensor([[[0, math.log(2), 0]]])
    assert round(label_smoothed_cross_entropy(logits, torch.tensor([[1]])).item(), 3) == 0.739
    share, other = 0.9 + 0.1 / 37000, 0.1 / 37000
    entropy = -share * math.log(share) - 36999 * other * math.log(other)
    assert f"{entropy:.3f}" in right.questions[0].answer
