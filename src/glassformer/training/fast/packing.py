"""Training with packed batches: the forms that take the place of those for padded batches."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from glassformer.data.token_store import Packed
from glassformer.training.fast.packed import (
    PackedBatch,
    PackedShape,
    packed_batch,
    packed_shape,
    plan_packed,
)
from glassformer.training.fast.packed_model import not_packed, packed_copy, packed_losses
from glassformer.training.fast.replay import ReplayedBackward
from glassformer.training.optimiser import Learner, MixedPrecision

__all__ = ["Packing"]


@dataclass(frozen=True)
class Packing(PackedShape):
    """Packed batches of one shape, with their plan, their loss and their learner."""

    losses = staticmethod(packed_losses)
    refusal = staticmethod(not_packed)
    shape_for = staticmethod(packed_shape)

    def plan(self, packed: Packed, *, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """The rows of each batch of an epoch."""
        lengths = packed.source.lengths, packed.target.lengths
        return plan_packed(*lengths, shape=self, seed=seed, epoch=epoch)

    def batch(
        self, packed: Packed, rows: NDArray[np.int64], *, backwards: bool, elsewhere: bool
    ) -> PackedBatch:
        return packed_batch(packed, rows, self, backwards=backwards, elsewhere=elsewhere)

    def copies(self, mixed_precision: MixedPrecision | None) -> MixedPrecision:
        """A function from a model to its copy for packed batches."""
        return partial(packed_copy, longest=self.longest_filler, mixed_precision=mixed_precision)

    def replay(self, learner: Learner) -> None:
        """Let a graph compute the learner's gradients."""
        learner.replayed = ReplayedBackward(learner.backward, learner.model.parameters())
