"""Muon against the singular value decomposition, by hand, and beside Adam."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.training.checkpoint import (
    RunState,
    load_checkpoint,
    load_optimiser,
    save_checkpoint,
)
from glassformer.training.fast.muon import orthogonal
from glassformer.training.setup.learner import new_optimiser

LR = 0.01


def toy_model(seed=3, blocks=1):
    torch.manual_seed(seed)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 12, "dropout": 0.0}
    layers = {"num_encoder_layers": blocks, "num_decoder_layers": blocks}
    vocab = {"source_vocab_size": 13, "target_vocab_size": 13}
    return Transformer(ModelConfig(**sizes, **layers, **vocab, tying="three-way"))


def matrices(model):
    return {
        name: weight
        for name, weight in model.named_parameters()
        if weight.dim() == 2 and name.startswith(("encoder.", "decoder."))
    }


def give_gradients(model, seed=0):
    draw = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        weight.grad = torch.randn(weight.shape, generator=draw)


def steps(model, optimiser, count=1, first=0):
    for number in range(first, first + count):
        give_gradients(model, number)
        for group in optimiser.param_groups:
            group["lr"] = LR
        optimiser.step()


@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (6, 6)])
def test_singular_vectors_stay_and_values_come_near_one(shape):
    torch.manual_seed(1)
    left, _, right = torch.linalg.svd(torch.randn(3, *shape, dtype=torch.float64), False)
    values = torch.linspace(1.0, 0.1, 5 + (shape == (6, 6)), dtype=torch.float64)
    given = left @ torch.diag(values) @ right

    found = orthogonal(given)

    inner = left.mT @ found @ right.mT  # diagonal, if the singular vectors are the same
    diagonal = inner.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(inner, torch.diag_embed(diagonal), rtol=0, atol=1e-10)
    assert ((diagonal > 0.6) & (diagonal < 1.3)).all()


def test_scale_does_not_matter_and_zero_stays_zero():
    torch.manual_seed(1)
    given = torch.randn(2, 4, 6)

    torch.testing.assert_close(orthogonal(1e-6 * given), orthogonal(given))
    assert torch.equal(orthogonal(torch.zeros(1, 3, 3)), torch.zeros(1, 3, 3))


def test_the_blocks_matrices_are_muons_and_all_else_is_adams():
    model = toy_model()
    optimiser = new_optimiser(model, "muon")

    mine = {id(weight) for weight in matrices(model).values()}
    assert {id(weight) for weight in optimiser.matrices} == mine
    assert len(mine) == 6 + 10
    others = {id(weight) for weight in optimiser.others.param_groups[0]["params"]}
    assert others | mine == {id(weight) for weight in model.parameters()}
    assert not others & mine


def test_the_first_step_by_hand():
    model, before = toy_model(), toy_model()
    optimiser = new_optimiser(model, "muon")
    steps(model, optimiser)

    for name, weight in matrices(model).items():
        change = weight.detach() - matrices(before)[name].detach()
        # The momentum points where the gradient does, and orthogonal() does not see its length.
        expected = -LR * 0.2 * max(weight.shape) ** 0.5 * orthogonal(weight.grad[None])[0]
        torch.testing.assert_close(change, expected, rtol=1e-3, atol=1e-6)


def test_a_step_is_about_as_long_as_adams():
    model, before = toy_model(), toy_model()
    steps(model, new_optimiser(model, "muon"))

    for name, weight in matrices(model).items():
        root_mean_square = (weight - matrices(before)[name]).square().mean().sqrt()
        assert 0.1 < root_mean_square / LR < 0.3


def test_what_is_not_a_matrix_moves_as_with_adam_alone():
    one, other = toy_model(), toy_model()
    steps(one, new_optimiser(one, "muon"), count=3)
    steps(other, new_optimiser(other, "adam"), count=3)

    theirs = dict(other.named_parameters())
    for name, weight in one.named_parameters():
        assert torch.equal(weight, theirs[name]) == (name not in matrices(one)), name


def test_gradients_are_scaled_and_infinite_ones_change_nothing():
    plain, scaled = toy_model(), toy_model()
    first, second = new_optimiser(plain, "muon"), new_optimiser(scaled, "muon")
    steps(plain, first)
    give_gradients(scaled)
    for weight in scaled.parameters():
        weight.grad *= 4
    second.grad_scale = torch.tensor(4.0)
    for group in second.param_groups:
        group["lr"] = LR
    second.step()
    torch.testing.assert_close(plain.state_dict(), scaled.state_dict())

    before = {name: weight.clone() for name, weight in scaled.state_dict().items()}
    momentum = [second.state[one]["momentum"].clone() for one in second.matrices]
    for weight in scaled.parameters():
        weight.grad.fill_(torch.nan)
    second.found_inf = torch.tensor(1.0)
    second.step()
    torch.testing.assert_close(scaled.state_dict(), before, rtol=0, atol=0)
    for matrix, remembered in zip(second.matrices, momentum, strict=True):
        assert torch.equal(second.state[matrix]["momentum"], remembered)


class Launches(TorchDispatchMode):
    """Counts the operations that a GPU would launch, so without views."""

    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.count += not function.is_view
        return function(*arguments, **(named or {}))


def test_more_matrices_need_no_more_operations():
    counts = []
    for blocks in (1, 4):
        model = toy_model(blocks=blocks)
        optimiser = new_optimiser(model, "muon")
        steps(model, optimiser)
        give_gradients(model)
        with Launches() as launches:
            optimiser.step()
        counts.append(launches.count)
    assert counts[0] == counts[1] < 70


def test_a_checkpoint_goes_on_to_the_bit(tmp_path):
    model, other = toy_model(), toy_model(seed=9)
    optimiser, other_optimiser = new_optimiser(model, "muon"), new_optimiser(other, "muon")
    steps(model, optimiser, count=2)
    path = save_checkpoint(tmp_path, model, optimiser, RunState(update=2))
    load_checkpoint(path, other)
    load_optimiser(path, other, other_optimiser)

    for one, its in ((model, optimiser), (other, other_optimiser)):
        steps(one, its, count=3, first=2)
    torch.testing.assert_close(other.state_dict(), model.state_dict(), rtol=0, atol=0)
    kinds = {tuple(optimiser.state[weight]) for weight in model.parameters()}
    assert kinds == {("momentum",), ("step", "exp_avg", "exp_avg_sq")}


def test_in_bfloat16_it_is_near():
    exact, rough = toy_model(), toy_model()
    optimiser = new_optimiser(rough, "muon", products=torch.bfloat16)
    steps(exact, new_optimiser(exact, "muon"))
    steps(rough, optimiser)

    for name, weight in matrices(exact).items():
        apart = (weight - matrices(rough)[name]).norm()
        assert 0 < apart < 0.05 * (weight - matrices(toy_model())[name]).norm(), name
