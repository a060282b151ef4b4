"""bfloat16 with float32 weights behind: the products' operands, the gradients, the loss curve."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from glassformer.config import ModelConfig
from glassformer.data.batches import Batch
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN
from glassformer.training.fast.loss import projected_losses
from glassformer.training.fast.mixed_precision import working_copy
from glassformer.training.optimiser import Learner
from glassformer.training.setup.learner import new_optimiser

VOCAB = 13
BF16 = torch.bfloat16


PLAIN_FORMS = replace(FAST, attention=PLAIN.attention, dropout=PLAIN.dropout)


def toy_model(parts=FAST, **changes):
    torch.manual_seed(3)
    settings = {"d_model": 8, "num_heads": 2, "d_ff": 12, "dropout": 0.0, "norm": "pre"}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    sizes = {"source_vocab_size": VOCAB, "target_vocab_size": VOCAB}
    return Transformer(ModelConfig(**{**settings, **layers, **sizes, **changes}), parts)


COPIES = {"float32": None, "bfloat16": working_copy}
COPIES |= {"float16": partial(working_copy, dtype=torch.float16)}


def learner_of(model, precision, kind="adam"):
    losses = partial(projected_losses, smoothing=0.1)
    optimiser, copy = new_optimiser(model, kind), COPIES[precision]
    return Learner(model, optimiser, losses=losses, mixed_precision=copy, clip=1.0)


def batch(seed=0, rows=7, width=5):
    """To say again what was read."""
    draw = torch.Generator().manual_seed(seed)
    source = torch.randint(4, VOCAB, (rows, width), generator=draw)
    source[0, -2:] = 0
    target = torch.cat((torch.full((rows, 1), 2), source[:, :-1]), dim=1)
    tokens = int((source != 0).sum())
    return Batch(source, target, source, 2 * tokens, tokens)


class Products(TorchDispatchMode):
    """Records the operands' types of all matrix products, forward and backward."""

    def __init__(self):
        super().__init__()
        self.types, self.names = [], set()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        name = function.overloadpacket.__name__
        if name in ("mm", "bmm", "addmm", "addmm_", "baddbmm", "mv", "matmul", "linear"):
            self.names.add(name)
            operands = arguments[1:] if name.startswith(("addmm", "baddbmm")) else arguments
            self.types += [operand.dtype for operand in operands]
        fused = "scaled_dot_product" in name
        assert not fused or arguments[0].dtype != BF16, "the slow kernel"
        return function(*arguments, **(named or {}))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "post", "tying": "none", "output_bias": True, "positions": "learned"},
        {"tying": "target", "embedding_norm": True, "attention_dropout": 0.2, "dropout": 0.2},
    ],
    ids=["three-way", "none", "target"],
)
def test_every_product_has_operands_in_bfloat16(changes):
    model = toy_model(**changes)
    learner = learner_of(model, "bfloat16")

    with Products() as products:
        done = learner.update([batch()], rate=0.01)

    assert {"mm", "bmm", "addmm"} <= products.names
    assert set(products.types) == {BF16}
    assert done.read()[0] > 0
    assert {weight.dtype for weight in model.state_dict().values()} == {torch.float32}
    assert {weight.grad.dtype for weight in model.parameters()} == {torch.float32}
    moments = [kept for state in learner.optimiser.state.values() for kept in state.values()]
    assert {moment.dtype for moment in moments} == {torch.float32}


def test_the_copy_is_the_model_rounded_and_follows_it():
    model = toy_model()
    working, refresh = working_copy(model)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    refresh()

    mine = dict(working.encoder.named_parameters())
    assert len(mine) == 18
    for name, weight in model.encoder.named_parameters():
        assert torch.equal(mine[name], weight.bfloat16())
    assert working.output_weight is model.output_weight


def test_small_steps_are_not_lost():
    # A step of 1e-5 is far below what a weight of 1 can change by in bfloat16.
    model = toy_model()
    learner = learner_of(model, "bfloat16")
    norm = model.encoder.norm.weight
    for _ in range(100):
        learner.update([batch()], rate=1e-5)

    assert (norm - 1).abs().max() > 1e-4


@pytest.mark.parametrize(
    "changes", [{}, {"tying": "none", "positions": "learned"}, {"parts": PLAIN_FORMS}]
)
@pytest.mark.parametrize("rounded", ["bfloat16", "float16"])
def test_gradients_are_near_those_of_float32(changes, rounded):
    gradients = []
    for precision in ("float32", rounded):
        model = toy_model(**changes)
        learner = learner_of(model, precision)
        learner.gradient([batch(1), batch(2)])
        scale = learner.loss_scale.value if learner.loss_scale else 1.0
        gradients.append({name: w.grad / scale for name, w in model.named_parameters()})

    exact, rough = gradients
    whole = sum(gradient.norm() ** 2 for gradient in exact.values()) ** 0.5
    for name, gradient in exact.items():
        assert (rough[name] - gradient).norm() < 0.05 * gradient.norm() + 0.01 * whole, name


def test_the_loss_curve_is_that_of_float32():
    curves = []
    for precision in ("float32", "bfloat16", "float16"):
        model = toy_model(d_model=16, d_ff=32)
        learner = learner_of(model, precision)
        curves.append([learner.update([batch(seed)], rate=0.01).read()[0] for seed in range(120)])

    exact, *rounded = (torch.tensor(curve).view(-1, 20).mean(dim=1) for curve in curves)
    assert exact[-1] < 0.75 * exact[0]
    for rough in rounded:
        torch.testing.assert_close(rough, exact, rtol=0.03, atol=0.0)
        assert not torch.equal(rough, exact)
