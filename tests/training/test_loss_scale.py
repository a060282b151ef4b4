"""float16 with a dynamic loss scale: an overflow halves the scale and changes no weight."""

import pytest
import torch
from safetensors.torch import load_file

from glassformer.training.loss_scale import _FIRST, _PATIENCE, LossScale
from glassformer.training.optimiser import NotFiniteError
from glassformer.training.train import train
from tests.training.fast.test_mixed_precision import batch, learner_of, toy_model


def overflowing(learner):
    """The learner, whose gradients are too large for float16 at the first scale."""
    losses = learner.losses

    def steep(model, batch):
        loss, unsmoothed = losses(model, batch)
        loss.register_hook(lambda gradient: gradient * 100)
        return loss, unsmoothed

    learner.losses = steep
    return learner


def weights_of(model):
    return [weight.detach().clone() for weight in model.parameters()]


@pytest.mark.parametrize("kind", ["adam", "muon"])
def test_an_overflow_halves_the_scale_and_changes_no_weight(kind):
    model = toy_model()
    learner = overflowing(learner_of(model, "float16", kind))
    before, halvings = weights_of(model), 0

    while learner.loss_scale.value == _FIRST / 2**halvings:
        torch.testing.assert_close(list(model.parameters()), before, rtol=0, atol=0)
        assert learner.update([batch()], rate=0.01).read()[2] >= 0.0
        halvings += 1

    assert halvings > 2
    assert any(not weight.equal(old) for weight, old in zip(weights_of(model), before, strict=True))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_other_precisions_have_no_scale(precision):
    assert learner_of(toy_model(), precision).loss_scale is None


def test_a_step_is_the_step_without_a_scale():
    """The norm, the clipping and the step do not know the scale, up to the rounding of float16."""
    results = []
    for first in (2.0**4, 2.0**12):
        model = toy_model()
        learner = learner_of(model, "float16")
        learner.loss_scale.value.fill_(first)
        norm = learner.update([batch()], rate=0.01).read()[2]
        results.append([torch.tensor(norm), *weights_of(model)])
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)


def test_small_gradients_vanish_without_the_scale():
    """A hundred million target tokens divide each gradient; float16 ends at 6e-8."""
    shares = []
    for first in (1.0, _FIRST):
        model = toy_model()
        learner = learner_of(model, "float16")
        learner.loss_scale.value.fill_(first)
        small = batch()
        object.__setattr__(small, "target_tokens", 10**8)
        learner.gradient([small])
        inner = model.encoder.blocks[0].feed_forward.sublayer.inner.weight.grad
        shares.append(float((inner != 0).double().mean()))
    assert shares[0] < 0.5 * shares[1]


def test_a_loss_that_is_not_finite_is_an_error_as_in_float32():
    model = toy_model()
    learner = learner_of(model, "float16")
    with torch.no_grad():
        model.output_weight[5] = torch.nan
    with pytest.raises(NotFiniteError):
        learner.update([batch()], rate=0.01).read()


def test_a_gradient_too_large_for_the_least_scale_is_an_error():
    scale = LossScale(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))]))
    infinite = torch.tensor(torch.inf)
    assert scale.without_overflow(infinite) == 0
    scale.value.fill_(1.0)
    assert scale.without_overflow(infinite) == torch.inf
    assert scale.without_overflow(torch.tensor(3.0)) == 3


def test_the_scale_doubles_after_many_updates_without_an_overflow():
    scale = LossScale(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))]))
    history = []
    for number in range(2 * _PATIENCE):
        scale.update(torch.tensor(float(number == 5)))
        history.append(float(scale.value))
    assert history[4] == _FIRST
    assert history[5] == history[5 + _PATIENCE - 1] == _FIRST / 2
    assert history[5 + _PATIENCE] == _FIRST


@pytest.mark.parametrize("kind", ["adam", "muon"])
def test_a_stopped_run_goes_on_with_its_scale_to_the_bit(
    config, recorder, interrupted, tmp_path, monkeypatch, kind
):
    """The first update overflows; a run that forgets the scale would leave out another update."""
    monkeypatch.setattr("glassformer.training.loss_scale._FIRST", 2.0**19)
    options = {"precision": "float16", "optimiser": kind}
    whole = train(config(run=tmp_path / "whole", **options), recorder).directory
    with interrupted():
        train(config(**options), recorder)
    run = train(config(**options), recorder).directory

    assert recorder.noted("continuing from update 1")
    assert recorder.noted("float16 on cpu")
    for name in ("model", "optimiser"):
        [*_, one], [*_, other] = (
            sorted((path / "checkpoints").glob(f"*/{name}.safetensors")) for path in (whole, run)
        )
        assert one.read_bytes() == other.read_bytes()
    [scale] = [tensor for name, tensor in load_file(other).items() if name.endswith("loss_scale")]
    assert 1 < float(scale) < 2.0**19
