"""Which batches an update reads, and what it draws: functions of the seed and of the place."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.data.batches import Batch, make_batch, plan_batches
from glassformer.data.token_store import Packed
from glassformer.training.checkpoint import RunState
from glassformer.training.setup.options import TrainConfig

__all__ = ["Reader", "epoch_plan", "seed_update", "total_updates"]


def epoch_plan(packed: Packed, config: TrainConfig, epoch: int) -> list[NDArray[np.int64]]:
    """The rows of each batch of an epoch."""
    return plan_batches(
        packed.source_lengths,
        packed.target_lengths,
        tokens=config.batch_tokens or 4096,
        seed=config.seed,
        epoch=epoch,
    )


def total_updates(packed: Packed, config: TrainConfig) -> int:
    """The updates of the run: as said, or as many as the epochs come to."""
    if config.updates is not None:
        return config.updates
    per_epoch = len(epoch_plan(packed, config, 0)) / config.accumulate
    return max(1, round((config.epochs or 1.0) * per_epoch))


class Reader:
    """What update after update reads, from where the state is; it is moved on with each.

    Of each batch only the ``share`` that is given is made; the plan is the same for any.
    """

    def __init__(
        self,
        state: RunState,
        config: TrainConfig,
        packed: Packed,
        share: slice,
    ) -> None:
        self._state, self._config = state, config
        self._packed, self._share = packed, share
        self._places = self._each_place()

    def read(self, *, backwards: bool = False) -> list[Batch]:
        """The batches of the next update; ``backwards``: from target to source."""
        return [
            make_batch(self._packed, next(self._places), self._share, backwards=backwards)
            for _ in range(self._config.accumulate)
        ]

    def _each_place(self) -> Iterator[NDArray[np.int64]]:
        """The rows of the next batch, epoch after epoch."""
        state = self._state
        while True:
            plan = epoch_plan(self._packed, self._config, state.epoch)
            while state.batch < len(plan):
                state.batch += 1
                yield plan[state.batch - 1]
            state.epoch, state.batch = state.epoch + 1, 0


def seed_update(seed: int, update: int, rank: int) -> None:
    """Make what is drawn at an update a function of these three alone."""
    # Mixed, because torch's generator for the CPU looks at no more than 32 bits.
    [mixed] = np.random.SeedSequence((seed, update, rank)).generate_state(1)
    torch.manual_seed(int(mixed))
