"""Any torch optimiser trains: it is clipped, guarded, saved, and goes on to the bit."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import optim

from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import InputError, UsageError
from glassformer.training import loop
from glassformer.training.checkpoint import RunState, checkpoint_of, save_checkpoint
from glassformer.training.optimiser import NotFiniteError
from glassformer.training.setup.learner import new_learner, new_optimiser
from glassformer.training.setup.options import LearningOptions
from glassformer.training.setup.prepare import prepare
from glassformer.training.train import new_trainer, train
from tests.training.test_optimiser import MICRO_BATCHES, toy_model


class Lion(optim.Optimizer):
    """Chen et al. 2023: the sign of the momentum."""

    def __init__(self, weights, betas=(0.9, 0.99)):
        super().__init__(weights, {"lr": 1e-4, "betas": betas})

    @torch.no_grad()
    def step(self, _closure=None):
        for group in self.param_groups:
            quick, slow = group["betas"]
            for weight in group["params"]:
                state = self.state[weight]
                mean = state.setdefault("mean", torch.zeros_like(weight))
                weight -= group["lr"] * mean.lerp(weight.grad, 1 - quick).sign()
                mean.lerp_(weight.grad, 1 - slow)


class Odd(Lion):
    """What others keep: whole numbers, text, bytes, other types, infinity, values of a group."""

    @torch.no_grad()
    def step(self, _closure=None):
        super().step()
        for group in self.param_groups:
            group["most"], group["least"] = float("inf"), min(group.get("least", 1.0), group["lr"])
            group["total"] = group.get("total", torch.zeros(())) + 1
            for weight in group["params"]:
                state = self.state[weight]
                state["updates"] = state.get("updates", 0) + 1
                state["name"] = "even" if state["updates"] % 2 == 0 else None
                state["low"] = (state["mean"] / 3).bfloat16()
                state["signs"] = state["mean"] > 0
                state["count"] = torch.tensor([2**40 + state["updates"]])
                state["none"] = torch.zeros(0)
                state["bound"] = torch.tensor(float("inf"))
                weight -= 1e-3 * (state["updates"] + state["low"] + state["signs"])
                weight -= 1e-3 * (state["count"] - 2**40) * group["total"] * group["least"]


KINDS = st.one_of(
    st.builds(
        partial,
        st.just(optim.SGD),
        momentum=st.sampled_from([0, 0.9]),
        weight_decay=st.sampled_from([0, 0.1]),
        fused=st.booleans(),
    ),
    st.builds(partial, st.just(optim.Adam), amsgrad=st.booleans(), fused=st.booleans()),
    st.builds(partial, st.just(optim.AdamW), foreach=st.booleans()),
    st.builds(partial, st.just(optim.RMSprop), momentum=st.sampled_from([0, 0.9])),
    st.builds(partial, st.just(optim.Adagrad), fused=st.booleans()),
    st.sampled_from([optim.NAdam, optim.RAdam, optim.Adamax, optim.Adadelta, optim.ASGD]),
    st.sampled_from([optim.Rprop, optim.Adafactor, Lion, Odd]),
)


def learner_at(state, directory, form, **options):
    return new_learner(
        toy_model(dropout=0.1),
        replace(PLAIN, optimiser=form),
        options=LearningOptions(**options),
        state=state,
        checkpoints=directory,
    )


def weights_of(learner):
    return [weight.detach().clone() for weight in learner.model.parameters()]


def updated(learner, numbers):
    for number in numbers:
        torch.manual_seed(number)  # as the loop seeds the dropout of an update
        learner.update([MICRO_BATCHES[number % 3]], rate=0.01 / number).read()
    return learner


@given(
    optimiser=KINDS,
    kind=st.sampled_from(["adam", "muon"]),
    clip=st.sampled_from([0.0, 0.5]),
    before=st.integers(1, 3),
)
@example(optimiser=Odd, kind="adam", clip=0.0, before=3)
@example(optimiser=Odd, kind="muon", clip=0.5, before=2)
def test_each_goes_on_to_the_bit(tmp_path_factory, optimiser, kind, clip, before):
    directory, options = tmp_path_factory.mktemp("run"), {"optimiser": kind, "clip": clip}
    whole = updated(learner_at(RunState(), directory, optimiser, **options), range(1, 6))
    part = updated(learner_at(RunState(), directory, optimiser, **options), range(1, before + 1))
    state = RunState(update=before)
    save_checkpoint(directory, part.model, part.optimiser, state)

    resumed = learner_at(state, directory, optimiser, **options)
    resumed.model.load_state_dict(part.model.state_dict())
    updated(resumed, range(before + 1, 6))

    for ours, theirs in zip(weights_of(resumed), weights_of(whole), strict=True):
        assert torch.equal(ours, theirs)
    for ours, theirs in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        kept, expected = resumed.optimiser.state[ours], whole.optimiser.state[theirs]
        assert kept.keys() == expected.keys()
        for key, value in expected.items():
            same = torch.equal if isinstance(value, torch.Tensor) else type(value).__eq__
            assert type(kept[key]) is type(value)
            assert same(kept[key], value)
            assert getattr(kept[key], "dtype", None) == getattr(value, "dtype", None)


@given(optimiser=KINDS, kind=st.sampled_from(["adam", "muon"]))
def test_a_loss_that_is_not_finite_changes_nothing(tmp_path_factory, optimiser, kind):
    learner = learner_at(RunState(), tmp_path_factory.getbasetemp(), optimiser, optimiser=kind)
    updated(learner, range(1, 3))
    before = weights_of(learner)
    learner.losses = lambda *_: (torch.nan * learner.model.output_weight.sum(), torch.zeros(()))

    with pytest.raises(NotFiniteError):
        learner.update(MICRO_BATCHES, rate=1.0).read()

    for weight, expected in zip(weights_of(learner), before, strict=True):
        assert torch.equal(weight, expected)


@given(fused=st.booleans(), kind=st.sampled_from(["adam", "muon"]))
def test_clip_shortens_each_step(tmp_path_factory, fused, kind):
    """With SGD, whose step is as long as the gradient."""
    steps = []
    for clip in (0.0, 0.01):
        optimiser = partial(optim.SGD, fused=fused)
        options = {"optimiser": kind, "clip": clip}
        learner = learner_at(RunState(), tmp_path_factory.getbasetemp(), optimiser, **options)
        begin = learner.model.output_weight.detach().clone()
        done = learner.update(MICRO_BATCHES, rate=0.1)
        steps.append(learner.model.output_weight - begin)
    torch.testing.assert_close(steps[1], steps[0] * 0.01 / done.read()[2], rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("optimiser", [Lion, optim.SGD], ids=lambda kind: kind.__name__)
def test_a_stopped_run_goes_on_to_the_bit(config, recorder, monkeypatch, tmp_path, optimiser):
    """SGD without momentum keeps no state at all."""
    parts = replace(FAST, optimiser=optimiser)
    options = {"optimiser": None, "rate_factor": 0.3}
    whole = train(config(run=tmp_path / "whole", **options), recorder, parts=parts).directory
    inner = loop.Trainer._save

    def killed(trainer, learner):
        inner(trainer, learner)
        raise KeyboardInterrupt

    monkeypatch.setattr(loop.Trainer, "_save", killed)
    with pytest.raises(KeyboardInterrupt):
        train(config(**options), recorder, parts=parts)
    monkeypatch.setattr(loop.Trainer, "_save", inner)

    run = train(config(**options), recorder, parts=parts).directory

    assert recorder.noted("continuing from update 4")
    weights = (run / "model.safetensors").read_bytes()
    assert weights == (whole / "model.safetensors").read_bytes()
    note = f"{optimiser.__name__} of all weights: its learning rate is the schedule's"
    assert recorder.noted(f"optimiser {note}")
    assert prepare(config(**options), parts).config.optimiser == "adam"


def test_beside_muon_it_has_the_other_weights(config, recorder):
    parts = replace(FAST, optimiser=Lion)

    trainer = new_trainer(prepare(config(optimiser="muon"), parts), recorder)

    trainer.metrics.close()
    assert recorder.noted("optimiser Lion of all weights but the blocks' matrices: its learning")
    found = new_optimiser(trainer.model, "muon", parts)
    assert [group.get("betas") for group in found.param_groups] == [None, (0.9, 0.99)]


class Listing(Lion):
    def step(self, _closure=None):
        super().step()
        for state in self.state.values():
            state["history"] = [1]


class Shared(Lion):
    def step(self, _closure=None):
        super().step()
        total = torch.zeros(())
        for state in self.state.values():
            state["total"] = total


class Closed(Lion):
    def step(self, closure):
        super().step(closure)


class Hidden(Lion):
    def state_dict(self):
        return {**super().state_dict(), "more": 1}


@pytest.mark.parametrize("kind", ["adam", "muon"])
@pytest.mark.parametrize(
    ("optimiser", "message"),
    [
        (
            Listing,
            "optimiser: the history of .* is a list, and a checkpoint holds tensors, .*: keep t",
        ),
        (Shared, r"optimiser: \S+/total and \S+/total share memory, .*: clone one of them"),
        (Closed, "optimiser Closed: its step needs a closure"),
        (optim.LBFGS, "optimiser LBFGS: its step needs a closure"),
        (Hidden, "optimiser Hidden: it has a state_dict of its own, .* keep all values there"),
        (lambda _: "Adam", "optimiser str: expected a torch.optim.Optimizer: subclass it"),
    ],
)
def test_one_that_cannot_be_saved_or_called_says_so_at_once(
    config, recorder, optimiser, message, kind
):
    parts = replace(FAST, optimiser=optimiser)

    with pytest.raises(UsageError, match=f"^{message}"):
        train(config(updates=40, optimiser=kind), recorder, parts=parts)

    assert not recorder.records
    assert not recorder.validations


def test_the_checkpoint_of_another_optimiser_is_refused(tmp_path):
    learner = updated(learner_at(RunState(), tmp_path, Lion, optimiser="muon"), [1])
    save_checkpoint(tmp_path, learner.model, learner.optimiser, RunState(update=1))

    with pytest.raises(InputError, match=r"group 1/\w+ is of another optimiser: give that one"):
        learner_at(RunState(update=1), tmp_path, Lion, optimiser="adam")


def test_a_checkpoint_of_the_preview_goes_on(tmp_path):
    """It has Adam's and Muon's tensors under these names, and no optimiser.json."""
    for kind in ("adam", "muon"):
        directory = tmp_path / kind
        directory.mkdir()
        learner = updated(learner_at(RunState(), directory, FAST.optimiser, optimiser=kind), [1])
        save_checkpoint(directory, learner.model, learner.optimiser, RunState(update=1))
        (checkpoint_of(directory, 1) / "optimiser.json").unlink()

        resumed = learner_at(RunState(update=1), directory, FAST.optimiser, optimiser=kind)

        resumed.model.load_state_dict(learner.model.state_dict())
        for one in (learner, resumed):
            updated(one, [2, 3])
        for ours, theirs in zip(weights_of(resumed), weights_of(learner), strict=True):
            assert torch.equal(ours, theirs)
