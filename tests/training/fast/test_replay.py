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
from torch.utils._pytree import tree_leaves

from glassformer.parts import FAST, Packing
from glassformer.training.fast.replay import ReplayedBackward
from glassformer.training.optimiser import Learner
from tests.recorded_graph import RecordedGraph
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


def operations(batch, precision, settings):
    """The operations of a gradient, with the shapes and types of their tensors and their numbers.

    The device "meta" has no values to read.
    """
    copy = FAST.mixed_precision if precision == "bfloat16" else None
    learner = learner_of(copy, "meta", **settings)
    graph = graph_of(learner)
    graph.run = lambda _: None  # an eager run would compute nothing
    learner.gradient([batch])
    return [
        (str(each.function), *map(noted, tree_leaves(each.arguments))) for each in graph.operations
    ]


def noted(argument):
    if isinstance(argument, Tensor):
        return argument.shape, argument.dtype, argument.stride()
    return argument


def graph_of(learner):
    """The stand-in of a graph that the learner's gradient replays from now on."""
    graph = RecordedGraph()
    weights = learner.model.parameters()
    learner.replayed = ReplayedBackward(learner.backward, weights, lambda: graph)
    return graph


@pytest.mark.parametrize(
    ("precision", "options"), [("float32", {}), *(("bfloat16", each) for each in SETTINGS)], ids=str
)
def test_all_batches_have_equal_operations(precision, options):
    """A graph repeats operations with their shapes and numbers, and cannot wait for a value."""
    expected = operations(batch_of([(9, 9)] * 3), precision, options)

    @settings(max_examples=settings.default.max_examples // 5)
    @given(SENTENCES, st.integers(0, 99))
    def hold(lengths, seed):
        assert operations(batch_of(lengths, seed), precision, options) == expected

    hold()


UPDATES = st.lists(st.lists(SENTENCES, min_size=1, max_size=3), min_size=1, max_size=4)


@settings(max_examples=settings.default.max_examples // 2)
@given(UPDATES, st.sampled_from(SETTINGS))
def test_gradients_are_those_without_a_graph(updates, options):
    eager, graphed = (learner_of(dtype=torch.float64, **options) for _ in range(2))
    graph_of(graphed)
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
    graph_of(learner)
    places = {
        tuple(gradient.data_ptr() for gradient in learner.gradient([batch_of([(3, 4)], seed)])[0])
        for seed in range(3)
    }
    assert len(places) == 1


def test_a_rank_without_a_batch_has_a_gradient_of_zeros():
    learner, batch = learner_of(), batch_of([(3, 4)]).share(slice(0))
    graph_of(learner)
    gradients, losses = learner.gradient([batch])
    assert not any(each.any() for each in [*gradients, losses])
