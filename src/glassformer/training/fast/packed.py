"""Packed batches: the sentences of a batch end to end in one row, without padding.

A padded batch is as wide as its longest sentence, so nearly each batch has a shape of its own. All
packed batches of a run have one shape, so that one graph computes each of them
(:mod:`~glassformer.training.fast.replay`). The readable versions are ``plan_batches`` and
``make_batch``. A test checks that both give equal updates (tests/training/fast/test_packed.py).
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from glassformer.data.batches import make_batch
from glassformer.data.token_store import Packed
from glassformer.training.fast.packed_model import (
    PackedBatch,
    not_packed,
    packed_copy,
    packed_losses,
)
from glassformer.training.fast.replay import ReplayedBackward
from glassformer.training.optimiser import MixedPrecision

__all__ = ["Packing"]

_ROOM = 1.25  # times the sentences that fill a row of sentences of mean length
_FILLER = 128  # places of a sentence of filler, or more; a kernel of attention takes 128 at once


@dataclass(frozen=True)
class Packing:
    """The shape of all packed batches of a run, and the forms of training that read them.

    A side of a batch has ``places`` for the tokens of at most ``sentences`` sentences; the longest
    sentence has ``longest`` tokens. Sentences of padding, the filler, take the places that are
    left, at least one place each. So the kernels of attention write all places, and each query has
    a key.
    """

    places: int
    sentences: int
    longest: int

    losses = staticmethod(packed_losses)
    refusal = staticmethod(not_packed)
    replay = ReplayedBackward

    @classmethod
    def of(cls, packed: Packed, tokens: int) -> "Packing":
        """The shape of batches of about ``tokens`` tokens, in which each pair has room."""
        lengths = [side.lengths.astype(np.int64) + 1 for side in (packed.source, packed.target)]
        longest = max(int(side.max(initial=1)) for side in lengths)
        places = max(tokens // 2, longest)
        mean = max(float(side.mean()) for side in lengths)
        return cls(places, math.ceil(_ROOM * places / mean), longest)

    @property
    def longest_filler(self) -> int:
        return max(self.longest, _FILLER)

    @property
    def fillers(self) -> int:
        """The number of sentences of filler of a side."""
        return -(-self.places // (self.longest_filler - 1))

    @property
    def width(self) -> int:
        """The number of places of a side, filler included."""
        return self.places + self.fillers

    def plan(
        self,
        source_lengths: NDArray[np.integer],
        target_lengths: NDArray[np.integer],
        *,
        seed: int,
        epoch: int,
    ) -> list[NDArray[np.int64]]:
        """The rows of each batch of an epoch, in random order; every row is in one batch.

        The lengths leave end symbols out.

        >>> lengths = np.array([3, 9, 3, 9])
        >>> plan = Packing(14, sentences=2, longest=10).plan(lengths, lengths, seed=1, epoch=0)
        >>> [rows.tolist() for rows in plan]
        [[0, 1], [2, 3]]
        """
        order = np.random.default_rng((seed, epoch)).permutation(len(source_lengths))
        lengths = (side[order].astype(np.int64) + 1 for side in (source_lengths, target_lengths))
        ends = [np.append(0, side.cumsum()) for side in lengths]
        batches, start = [], 0
        while start < len(order):
            stops = (np.searchsorted(end, end[start] + self.places, side="right") for end in ends)
            stop = int(min(start + self.sentences, min(stops) - 1))
            if stop == start:
                raise ValueError(f"a pair has more tokens on a side than {self.places:,} places")
            batches.append(order[start:stop])
            start = stop
        return batches

    def batch(
        self, packed: Packed, rows: NDArray[np.int64], *, backwards: bool = False
    ) -> PackedBatch:
        """The tensors of the given ``rows``; ``backwards`` swaps source and target."""
        padded = make_batch(packed, rows, backwards=backwards)
        names = ("target", "source") if backwards else ("source", "target")
        pads = [packed.meta.symbols[name]["pad"] for name in names]
        of_source, of_target = padded.source != pads[0], padded.labels != pads[1]
        return PackedBatch(
            source=self._filled(padded.source[of_source], pads[0])[None],
            target=self._filled(padded.target[of_target], pads[1])[None],
            labels=self._filled(padded.labels[of_target], pads[1])[None],
            tokens=padded.tokens,
            target_tokens=padded.target_tokens,
            source_positions=self._filled(of_source.nonzero()[:, 1]),
            target_positions=self._filled(of_target.nonzero()[:, 1]),
            ends=torch.stack([self._ends(real.sum(dim=1)) for real in (of_target, of_source)]),
        )

    def _filled(self, numbers: Int[Tensor, " used"], filler: int = 0) -> Int[Tensor, " width"]:
        return F.pad(numbers, (0, self.width - len(numbers)), value=filler).int()

    def _ends(self, lengths: Int[Tensor, " sentences"]) -> Int[Tensor, " ends"]:
        """The begin of the first sentence, the end of each, and the ends of filler."""
        filler, longer = divmod(self.width - int(lengths.sum()), self.fillers)
        fillers = filler + (torch.arange(self.fillers) < longer).int()
        ends = torch.cat((lengths.new_zeros(1), lengths, fillers)).cumsum(dim=0)
        return F.pad(ends, (0, self.sentences - len(lengths)), value=self.width).int()

    def copies(self, mixed_precision: MixedPrecision | None) -> MixedPrecision:
        """A function from a model to its copy for packed batches."""
        return partial(packed_copy, longest=self.longest_filler, mixed_precision=mixed_precision)
