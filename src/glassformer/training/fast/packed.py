"""Packed batches: several sentences end to end in each row, almost without padding.

A padded batch is as wide as its longest sentence, so nearly each batch has a shape of its own. All
packed batches of a run have one shape, so that one graph computes each of them
(:mod:`~glassformer.training.fast.replay`). The readable versions are ``plan_batches`` and
``make_batch``. A test checks that both give equal updates (tests/training/fast/test_packed.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batches import make_batch
from glassformer.data.token_store import Packed
from glassformer.training.fast.packed_losses import PackedBatch, not_packed, packed_losses
from glassformer.training.fast.replay import ReplayedBackward

__all__ = ["Packing"]

_WIDTH = 128  # tokens of a side of a row: few stay empty, and attention is not long
_MULTIPLE = 8  # a GPU's kernel of attention reads 8 numbers of a mask at once
_OPEN = 4  # rows that wait for a pair of the right size; more rows leave hardly fewer places empty


@dataclass(frozen=True)
class Packing:
    """The shape of all packed batches of a run, and the forms of training that read them.

    Each side of a batch has ``rows`` of ``width`` tokens. A pair's source and target stand in the
    rows of one number.
    """

    rows: int
    width: int

    losses = staticmethod(packed_losses)
    refusal = staticmethod(not_packed)
    replay = ReplayedBackward

    @classmethod
    def of(cls, packed: Packed, tokens: int) -> "Packing":
        """The shape of batches of about ``tokens`` tokens, in which each pair has room."""
        longest = max(int(side.lengths.max(initial=0)) for side in (packed.source, packed.target))
        width = max(longest + 1, min(_WIDTH, tokens // 2))
        width = -(-width // _MULTIPLE) * _MULTIPLE
        return cls(max(1, tokens // (2 * width)), width)

    def plan(
        self,
        source_lengths: NDArray[np.integer],
        target_lengths: NDArray[np.integer],
        *,
        seed: int,
        epoch: int,
    ) -> list[NDArray[np.int64]]:
        """The pairs of each batch of an epoch, in random order; every pair is in one batch.

        The lengths leave end symbols out.

        >>> lengths = np.array([3, 9, 3, 9])
        >>> plan = Packing(rows=1, width=14).plan(lengths, lengths, seed=1, epoch=0)
        >>> [pairs.tolist() for pairs in plan]
        [[0, 1], [2, 3]]
        """
        order = np.random.default_rng((seed, epoch)).permutation(len(source_lengths))
        lengths = (side[order].astype(np.int64) + 1 for side in (source_lengths, target_lengths))
        rows = self._filled(zip(*(side.tolist() for side in lengths), strict=True), opened=_OPEN)
        return [
            order[np.concatenate(rows[start : start + self.rows])]
            for start in range(0, len(rows), self.rows)
        ]

    def _filled(self, lengths: Iterable[tuple[int, int]], *, opened: int) -> list[list[int]]:
        """The pairs of each row: a pair goes into the first open row in which it has room.

        If it has room in none, a new row opens, and the oldest of ``opened`` rows closes. The rows
        stand in the order in which they open, so with one open row the pairs stay in their rows.
        """
        rows: list[list[int]] = []
        free: list[list[int]] = []  # the number of an open row, and its empty places on each side
        for pair, (source, target) in enumerate(lengths):
            if max(source, target) > self.width:
                raise ValueError(f"a pair has more tokens on a side than {self.width:,} places")
            for row in free:
                if source <= row[1] and target <= row[2]:
                    break
            else:
                row = [len(rows), self.width, self.width]
                rows.append([])
                free = [*free, row][-opened:]
            row[1] -= source
            row[2] -= target
            rows[row[0]].append(pair)
        return rows

    def batch(
        self, packed: Packed, pairs: NDArray[np.int64], *, backwards: bool = False
    ) -> PackedBatch:
        """The tensors of the given ``pairs``; ``backwards`` swaps source and target."""
        padded = make_batch(packed, pairs, backwards=backwards)
        names = ("target", "source") if backwards else ("source", "target")
        pads = [packed.meta.symbols[name]["pad"] for name in names]
        of_source, of_target = padded.source != pads[0], padded.labels != pads[1]
        lengths = [real.sum(dim=1).tolist() for real in (of_source, of_target)]
        rows = self._filled(zip(*lengths, strict=True), opened=1)
        sources, targets = (self._places(real, rows) for real in (of_source, of_target))
        return PackedBatch(
            source=self._laid(padded.source[of_source], sources, pads[0]),
            target=self._laid(padded.target[of_target], targets, pads[1]),
            labels=self._laid(padded.labels[of_target], targets, pads[1]),
            tokens=padded.tokens,
            target_tokens=padded.target_tokens,
            source_positions=self._laid(of_source.nonzero()[:, 1], sources),
            target_positions=self._laid(of_target.nonzero()[:, 1], targets),
            source_pairs=self._laid(of_source.nonzero()[:, 0] + 1, sources),
            target_pairs=self._laid(of_target.nonzero()[:, 0] + 1, targets),
        )

    def _places(
        self, real: Bool[Tensor, "pairs len"], rows: list[list[int]]
    ) -> Int[Tensor, " tokens"]:
        """The place of each token of all pairs in the rows end to end."""
        lengths = real.sum(dim=1)
        of_rows = torch.stack([lengths[row].sum() for row in rows])
        skipped = (self.width - of_rows).cumsum(dim=0) - (self.width - of_rows)
        return torch.arange(int(lengths.sum())) + skipped.repeat_interleave(of_rows)

    def _laid(
        self, numbers: Int[Tensor, " tokens"], places: Int[Tensor, " tokens"], empty: int = 0
    ) -> Int[Tensor, "rows width"]:
        row = torch.full((self.rows * self.width,), empty, dtype=torch.int32)
        row[places] = numbers.int()
        return row.view(self.rows, self.width)
