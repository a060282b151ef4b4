"""The batches and the random seed of each update, which the run's seed and position determine."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.data.batches import Batch, make_batch, plan_batches
from glassformer.data.token_store import Packed
from glassformer.parts import FAST, Packing, Parts
from glassformer.training.checkpoint import RunState
from glassformer.training.setup.options import LearningOptions

__all__ = ["BatchStream", "epoch_plan", "seed_update"]


def epoch_plan(
    packed: Packed, epoch: int, *, tokens: int | None, seed: int, packing: Packing | None = None
) -> list[NDArray[np.int64]]:
    """The rows of each batch of an epoch; a padded batch has at most ``tokens`` tokens."""
    if packing:
        lengths = packed.source.lengths, packed.target.lengths
        return packing.plan(*lengths, seed=seed, epoch=epoch)
    return plan_batches(
        packed.source.lengths,
        packed.target.lengths,
        tokens=tokens or 4096,
        seed=seed,
        epoch=epoch,
    )


class BatchStream:
    """The batches of each update, from the place in ``state`` on; each update moves the place.

    The stream builds only ``share``: a share of the rows of each padded batch, or a share of the
    packed batches of each update. Every share has an equal plan of an epoch.
    """

    def __init__(
        self,
        state: RunState,
        options: LearningOptions,
        packed: Packed,
        share: slice,
        parts: Parts = FAST,
        *,
        seed: int,
    ) -> None:
        self._state, self._options, self._seed, self._parts = state, options, seed, parts
        self._packed, self._share = packed, share
        self._packing = parts.packed(state.packing)
        self._rows = self._rows_of_each_batch()

    def next_batches(self, *, backwards: bool = False) -> list[Batch]:
        """The batches of the next update, from target to source if ``backwards``."""
        numbers, packed, shift = range(self._options.accumulate), self._packed, self._parts.shift
        plan, own = [next(self._rows) for _ in numbers], numbers[self._share]
        if packing := self._packing:
            return [
                packing.batch(packed, rows, backwards=backwards)
                if number in own
                else make_batch(packed, rows, slice(0), backwards=backwards)  # counts the tokens
                for number, rows in enumerate(plan)
            ]
        return [
            make_batch(packed, rows, self._share, backwards=backwards, shift=shift) for rows in plan
        ]

    def _rows_of_each_batch(self) -> Iterator[NDArray[np.int64]]:
        """The rows of the next batch, epoch after epoch."""
        state, tokens = self._state, self._options.batch_tokens
        while True:
            place = self._packed, state.epoch
            plan = epoch_plan(*place, tokens=tokens, seed=self._seed, packing=self._packing)
            while state.batch < len(plan):
                state.batch += 1
                yield plan[state.batch - 1]
            state.epoch, state.batch = state.epoch + 1, 0


def seed_update(seed: int, update: int, rank: int) -> None:
    """Seed torch for an update of a rank; then the three arguments determine dropout."""
    # torch's CPU generator reads only 32 bits of a seed, so SeedSequence mixes three numbers.
    [mixed] = np.random.SeedSequence((seed, update, rank)).generate_state(1)
    torch.manual_seed(int(mixed))
