"""Packed batches: the sentences of a batch end to end in one row, without padding.

A padded batch is as wide as its longest sentence, so nearly each batch has a shape of its own. All
packed batches of a run have one shape, so that one captured graph computes each of them
(:mod:`~glassformer.training.fast.replay`). The readable versions are ``plan_batches`` and
``make_batch`` in ``data/batches.py``. A test checks that both give equal updates
(tests/training/fast/test_packed.py).

The last places of a row are filler: short sentences of padding, whose labels are padding too. So
a query always has a key, and the kernels of attention write each place.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batches import Batch, shift
from glassformer.data.token_store import Packed, Sentences

__all__ = ["PackedBatch", "PackedShape", "packed_batch", "packed_shape", "plan_packed"]

_ROOM = 1.25  # times the sentences that fill a row of sentences of mean length
_FILLER = 128  # places of a sentence of filler, or more; a kernel of attention takes 128 at once


@dataclass(frozen=True)
class PackedShape:
    """The shape of all packed batches of a run, which the run records.

    A side of a batch has ``places`` for the tokens of at most ``sentences`` sentences; the longest
    sentence has ``longest`` tokens.
    """

    places: int
    sentences: int
    longest: int

    @property
    def longest_filler(self) -> int:
        return max(self.longest, _FILLER)

    @property
    def fillers(self) -> int:
        """The number of sentences of filler; each has a place, even if sentences fill the row."""
        return -(-self.places // (self.longest_filler - 1))

    @property
    def width(self) -> int:
        """The number of places of a side, filler included."""
        return self.places + self.fillers


@dataclass(frozen=True)
class PackedBatch(Batch):
    """The tensors of a packed batch; ``tokens`` and ``target_tokens`` count no filler.

    ``source``, ``target`` and ``labels`` have one row, or none if another rank has the batch.
    ``ends`` has a row for the target and one for the source: the begin of the first sentence, then
    the end of each. All tensors are of int32, which the kernels of attention want for ``ends``.
    """

    source_positions: Int[Tensor, " src_len"]
    target_positions: Int[Tensor, " tgt_len"]
    ends: Int[Tensor, "2 ends"]

    def share(self, rows: slice) -> "PackedBatch":
        """The whole batch, because threads do not divide a packed batch."""
        if rows.step not in (None, 1):
            raise ValueError("a packed batch has no shares: give Shares(0)")
        return self


def packed_shape(packed: Packed, tokens: int) -> PackedShape:
    """The shape of batches of about ``tokens`` tokens, in which each pair has room."""
    lengths = [side.lengths.astype(np.int64) + 1 for side in (packed.source, packed.target)]
    longest = max(int(side.max(initial=1)) for side in lengths)
    places = max(tokens // 2, longest)
    mean = max(float(side.mean()) for side in lengths)
    return PackedShape(places, math.ceil(_ROOM * places / mean), longest)


def plan_packed(
    source_lengths: NDArray[np.integer],
    target_lengths: NDArray[np.integer],
    *,
    shape: PackedShape,
    seed: int,
    epoch: int,
) -> list[NDArray[np.int64]]:
    """The rows of each batch of an epoch, in random order; every row is in one batch.

    A side of a batch has at most ``shape.places`` tokens, end symbols included, which
    ``source_lengths`` and ``target_lengths`` leave out.

    >>> lengths = np.array([3, 9, 3, 9])
    >>> shape = PackedShape(places=14, sentences=2, longest=10)
    >>> plan = plan_packed(lengths, lengths, shape=shape, seed=1, epoch=0)
    >>> [rows.tolist() for rows in plan]
    [[0, 1], [2, 3]]
    """
    order = np.random.default_rng((seed, epoch)).permutation(len(source_lengths))
    sides = [
        np.asarray(side, dtype=np.int64)[order] + 1 for side in (source_lengths, target_lengths)
    ]
    ends = [np.append(0, side.cumsum()) for side in sides]
    batches, start = [], 0
    while start < len(order):
        stops = (np.searchsorted(end, end[start] + shape.places, side="right") - 1 for end in ends)
        stop = int(min(start + shape.sentences, *stops))
        if stop == start:
            raise ValueError(f"a pair has more tokens on a side than the {shape.places:,} places")
        batches.append(order[start:stop])
        start = stop
    return batches


def packed_batch(
    packed: Packed,
    rows: NDArray[np.int64],
    shape: PackedShape,
    *,
    backwards: bool = False,
    elsewhere: bool = False,
) -> PackedBatch:
    """The tensors of the given ``rows`` of a packed corpus.

    ``backwards`` swaps source and target, which must have one vocabulary. If another rank computes
    the batch ``elsewhere``, the tensors have no rows, and still ``tokens`` counts all of them.
    """
    names = ("target", "source") if backwards else ("source", "target")
    sides = [getattr(packed, name) for name in names]
    counts = [int(side.lengths[rows].sum()) + len(rows) for side in sides]
    symbols = [packed.meta.symbols[name] for name in names]
    (source, source_positions, source_ends), (labels, positions, ends) = (
        _end_to_end(side, rows[:0] if elsewhere else rows, of_side, shape)
        for side, of_side in zip(sides, symbols, strict=True)
    )
    target = shift(labels, symbols[1]["bos"])
    target[0, positions == 0] = symbols[1]["bos"]
    return PackedBatch(
        source=source[: not elsewhere],
        target=target[: not elsewhere],
        labels=labels[: not elsewhere],
        tokens=sum(counts),
        target_tokens=counts[1],
        source_positions=source_positions,
        target_positions=positions,
        ends=torch.stack((ends, source_ends)),
    )


def _end_to_end(
    side: Sentences, rows: NDArray[np.int64], symbols: Mapping[str, int], shape: PackedShape
) -> tuple[Tensor, Tensor, Tensor]:
    """A row of the sentences with their end symbols, each token's position, and the ends."""
    ids, lengths = side.gather(rows)
    lengths = lengths + 1
    used = int(lengths.sum())
    row = np.full(shape.width, symbols["pad"], dtype=np.int32)
    row[:used] = symbols["eos"]
    is_word = np.ones(used, dtype=bool)
    is_word[lengths.cumsum() - 1] = False
    row[:used][is_word] = ids
    filler, longer = divmod(shape.width - used, shape.fillers)
    fillers = filler + (np.arange(shape.fillers) < longer)
    ends = np.full(1 + shape.sentences + shape.fillers, shape.width, dtype=np.int32)
    ends[0] = 0
    ends[1 : 1 + len(rows) + shape.fillers] = np.append(lengths, fillers).cumsum()
    positions = np.arange(shape.width, dtype=np.int32) - np.repeat(ends[:-1], np.diff(ends))
    positions[used:] = 0
    return torch.from_numpy(row)[None], torch.from_numpy(positions), torch.from_numpy(ends)
