"""The gradient as a graph: equal operations for all batches, and gradients as without a graph.

A stand-in takes the graph's place on a CPU; tests/test_cuda.py has a GPU's graph.
"""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from glassformer.parts import FAST, Packing
from glassformer.training.fast.replay import ReplayedBackward
from glassformer.training.optimiser import Learner
from tests.training.fast.test_packed import corpus, model_of

PACKING = Packing.of(corpus([(9, 9)] * 3), 60)
SENTENCES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3)
SETTINGS = [
    {},
    {"norm": "pre", "tying": "none", "output_bias": True, "positions": "learned"},
    {"embedding_norm": True, "dropout": 0.1},
]


def batch_of(lengths, seed=1):
    packed = corpus(lengths, seed)
    return PACKING.batch(packed, np.arange(len(lengths)))


def learner_of(mixed_precision=None, device="cpu", dtype=torch.float32, **settings):
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = model_of(**layers, **settings).to(device, dtype).train()
    return Learner(
        model,
        torch.optim.SGD(model.parameters()),
        losses=partial(PACKING.losses, smoothing=0.1),
        mixed_precision=mixed_precision,
    )


class Tape(TorchDispatchMode):
    """Notes each operation with the shapes and types of its tensors, and its numbers."""

    def __init__(self):
        super().__init__()
        self.notes = []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        named = named or {}
        notes = (
            (each.shape, each.dtype, each.stride()) if isinstance(each, Tensor) else each
            for each in tree_flatten((arguments, named))[0]
        )
        self.notes.append((str(function), *notes))
        return function(*arguments, **named)

    # The stand-in of a graph.
    def run(self, work):
        pass

    def capture(self, work):
        with self:
            work()

    def replay(self):
        pass


def tape_of(batch, precision, settings):
    """The operations of a gradient on the device "meta", where no operation has values to read."""
    copy = FAST.mixed_precision if precision == "bfloat16" else None
    learner, tape = learner_of(copy, "meta", **settings), Tape()
    replayed = ReplayedBackward(learner.backward, learner.model.parameters(), lambda: tape)
    learner.replayed = replayed
    learner.gradient([batch])
    return tape.notes


@pytest.mark.parametrize(
    ("precision", "options"), [("float32", {}), *(("bfloat16", each) for each in SETTINGS)], ids=str
)
def test_all_batches_have_equal_operations(precision, options):
    """A graph repeats operations with their shapes and numbers, and cannot wait for a value."""
    expected = tape_of(batch_of([(9, 9)] * 3), precision, options)

    @settings(max_examples=settings.default.max_examples // 5)
    @given(SENTENCES, st.integers(0, 99))
    def hold(lengths, seed):
        assert tape_of(batch_of(lengths, seed), precision, options) == expected

    hold()


class StandIn:
    """Runs the work again for each replay, and writes its results to the captured addresses."""

    def __init__(self, learner):
        self.learner, self.captured = learner, []

    def results(self):
        gradients = [weight.grad for weight in self.learner.model.parameters()]
        return [*gradients, self.learner.replayed._losses]

    def run(self, work):
        work()

    def capture(self, work):
        self.work = work
        work()
        self.captured = self.results()
        for result in self.captured:  # a capture computes nothing
            result.fill_(torch.nan)

    def replay(self):
        losses = self.captured[-1]
        self.work()
        for result, new in zip(self.captured, self.results(), strict=True):
            result.copy_(new)
        self.learner.replayed._losses = losses


UPDATES = st.lists(st.lists(SENTENCES, min_size=1, max_size=3), min_size=1, max_size=4)


@settings(max_examples=settings.default.max_examples // 2)
@given(UPDATES, st.sampled_from(SETTINGS))
def test_gradients_are_those_without_a_graph(updates, options):
    eager, graphed = (learner_of(dtype=torch.float64, **options) for _ in range(2))
    new_graph = partial(StandIn, graphed)
    graphed.replayed = ReplayedBackward(graphed.backward, graphed.model.parameters(), new_graph)
    for number, update in enumerate(updates):
        batches = [batch_of(lengths, seed) for seed, lengths in enumerate(update)]
        results = []
        for learner in (eager, graphed):
            torch.manual_seed(number)  # as for each update of a run, for dropout
            results.append(learner.gradient(batches))
            learner.optimiser.zero_grad(set_to_none=True)  # as before a validation
        (expected, expected_losses), (gradients, losses) = results
        torch.testing.assert_close(gradients, expected, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(losses, expected_losses)  # in float32


def test_results_lie_at_fixed_addresses():
    learner = learner_of()
    new_graph = partial(StandIn, learner)
    learner.replayed = ReplayedBackward(learner.backward, learner.model.parameters(), new_graph)
    places = {
        tuple(gradient.data_ptr() for gradient in learner.gradient([batch_of([(3, 4)], seed)])[0])
        for seed in range(3)
    }
    assert len(places) == 1


def test_a_rank_without_a_batch_has_a_gradient_of_zeros():
    learner, batch = learner_of(), batch_of([(3, 4)]).share(slice(0))
    new_graph = partial(StandIn, learner)
    learner.replayed = ReplayedBackward(learner.backward, learner.model.parameters(), new_graph)
    gradients, losses = learner.gradient([batch])
    assert not any(each.any() for each in [*gradients, losses])
