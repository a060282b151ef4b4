"""The schedule lesson: Adam by hand is torch's; right solutions pass, wrong ones are named."""

import math
from types import SimpleNamespace

import pytest
import torch

from glassformer.tools.learn.check import measure
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.lessons.schedule.plain import adam_step


def verdict_on(hole, function):
    judge = Judge.of(lesson("schedule"), hole)
    return judge.verdict(measure(judge.probes, SimpleNamespace(**{hole: function})))


def test_adam_by_hand_is_torchs():
    generator = torch.Generator().manual_seed(1)
    gradients = [10 ** (3 - i) * torch.randn(3, 5, generator=generator) for i in range(7)]
    weight = torch.randn(3, 5, generator=generator)
    torchs = torch.nn.Parameter(weight.clone())
    optimiser = torch.optim.Adam([torchs], lr=0.03, betas=(0.9, 0.98), eps=1e-9)
    state = (0, torch.zeros(3, 5), torch.zeros(3, 5))
    for gradient in gradients:
        weight, state = adam_step(weight, gradient, state=state, rate=0.03)
        torchs.grad = gradient
        optimiser.step()
    assert torch.allclose(weight, torchs.detach(), atol=1e-6)


def rate_with_branches(update, d_model, warmup=4000, factor=1.0):
    peak = 1 / math.sqrt(d_model * warmup)
    if update < warmup:
        return factor * peak * update / warmup
    return factor * peak * math.sqrt(warmup / update)


def adam_by_element(w, g, state, rate, betas=(0.9, 0.98), epsilon=1e-9):
    t, m, v = state
    t, m, v, new = t + 1, m.clone(), v.clone(), w.clone()
    for i in range(w.numel()):
        m.view(-1)[i] = m.view(-1)[i].lerp(g.flatten()[i], 1 - betas[0])
        v.view(-1)[i] = v.view(-1)[i].lerp(g.flatten()[i].square(), 1 - betas[1])
        root = math.sqrt(v.view(-1)[i].item() / (1 - betas[1] ** t))
        new.view(-1)[i] -= rate * m.view(-1)[i] / (1 - betas[0] ** t) / (root + epsilon)
    return new, (t, m, v)


@pytest.mark.parametrize(
    ("hole", "function"),
    [("noam_schedule", rate_with_branches), ("adam_step", adam_by_element)],
)
def test_unusual_right_solutions_pass(hole, function):
    assert verdict_on(hole, function).outcome == "right"


def numpy_minimum_of_wrong_terms(update, d_model, warmup=4000, factor=1.0):
    return factor * d_model**-0.5 * min(update**-0.5, update / warmup**0.5)


def divided_by_width(update, d_model, warmup=4000, factor=1.0):
    return factor / d_model * min(1 / math.sqrt(update), update / warmup**1.5)


def first_update_is_zero(update, d_model, warmup=4000, factor=1.0):
    step = update - 1
    return factor * (d_model**-0.5) * min(step ** (-0.5), step * warmup ** (-1.5))


@pytest.mark.parametrize(
    ("function", "mistake"),
    [
        (numpy_minimum_of_wrong_terms, "noam-line-of-root"),
        (divided_by_width, "noam-width-without-root"),
        (first_update_is_zero, "noam-from-zero"),
    ],
)
def test_wrong_rates_are_named(function, mistake):
    verdict = verdict_on("noam_schedule", function)
    assert verdict.mistakes == ((mistake,),), verdict.lines


def forgets_the_correction(weight, gradient, state, rate, betas=(0.9, 0.98), epsilon=1e-9):
    t, m, v = state
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient * gradient
    return weight - rate * m / (torch.sqrt(v) + epsilon), (t + 1, m, v)


def overwrites_the_means(weight, gradient, state, rate, betas=(0.9, 0.98), epsilon=1e-9):
    t, m, v = state
    t += 1
    m = torch.lerp(gradient, m, betas[0])
    v = torch.lerp(gradient**2, v, betas[1])
    m = m / (1 - betas[0] ** t)
    v = v / (1 - betas[1] ** t)
    return weight - rate * m / (v**0.5 + epsilon), (t, m, v)


def changes_its_inputs(weight, gradient, state, rate, betas=(0.9, 0.98), epsilon=1e-9):
    t, m, v = state
    t += 1
    m.mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    v.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    step = rate * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + epsilon)
    weight -= step
    return weight, (t, m, v)


def of_pytorch_one(weight, gradient, state, rate, betas=(0.9, 0.98), epsilon=1e-9):
    t, m, v = state
    t, m = t + 1, betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient**2
    rate = rate * math.sqrt(1 - betas[1] ** t) / (1 - betas[0] ** t)
    return weight - rate * m / (v.sqrt() + epsilon), (t, m, v)


@pytest.mark.parametrize(
    ("function", "mistake"),
    [
        (forgets_the_correction, "adam-correction-missing"),
        (overwrites_the_means, "adam-state-unbiased"),
        (changes_its_inputs, "adam-in-place"),
        (of_pytorch_one, "adam-epsilon-early"),
    ],
)
def test_wrong_updates_are_named(function, mistake):
    verdict = verdict_on("adam_step", function)
    assert verdict.mistakes == ((mistake,),), verdict.lines


def with_weight_decay(weight, gradient, state, rate, betas=(0.9, 0.98), epsilon=1e-9):
    new, state = adam_step(weight, gradient, state=state, rate=rate, betas=betas, epsilon=epsilon)
    return new - 0.01 * rate * weight, state


def cosine(update, d_model, warmup=4000, factor=1.0):
    peak = factor * (d_model * warmup) ** -0.5
    return peak * (update / warmup if update < warmup else 0.5 + 0.5 * math.cos(update / 1e5))


@pytest.mark.parametrize(
    ("hole", "function"), [("adam_step", with_weight_decay), ("noam_schedule", cosine)]
)
def test_unknown_mistakes_get_no_name(hole, function):
    verdict = verdict_on(hole, function)
    assert verdict.outcome in ("law", "difference")


def test_the_worked_numbers_of_the_lesson():
    from glassformer import noam_schedule

    rates = [noam_schedule(update, d_model=4, warmup=100) for update in (1, 100, 400)]
    assert rates == pytest.approx([0.0005, 0.05, 0.025])
    begin = (0, torch.zeros(1), torch.zeros(1))
    weight, (_, mean, square) = adam_step(torch.ones(1), torch.tensor([4.0]), state=begin, rate=0.1)
    assert (weight.item(), mean.item(), square.item()) == pytest.approx((0.9, 0.4, 0.32))
    peaks = [noam_schedule(warmup, d_model=512, warmup=warmup) for warmup in (4000, 2000)]
    assert [f"{peak:.5f}" for peak in peaks] == ["0.00070", "0.00099"]
