"""The decoder's KV cache for beam search: beams that change places copy no keys.

The plain form is :class:`glassformer.model.cache.DecoderState`; tests hold the two equal. This one
differs in three ways:

- Rows come in groups: the ``width`` unfinished targets of one sentence lie side by side. They share
  the memory's keys and values, and one pool with the keys and values of all their tokens.
- Each beam has a mask over the pool, added to its scores: 0 for its own tokens, -inf for those of
  other beams. A beam that changes its place moves its mask, not its keys.
- The pool has spare room. A full pool drops the keys that no beam uses; few remain, because the
  beams of a sentence soon descend from one. Only then, and when sentences leave, are keys copied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["KeyPool", "PooledState"]

_MIN_STEPS = 8  # the steps that a new pool has room for, at least


class KeyPool:
    """Keys and values of every decoder block, and the number of written ones.

    ``blocks`` has one tensor for each block: (sentences, 2, room, d_model), keys first.
    """

    def __init__(self, blocks: list[Tensor], written: int) -> None:
        self.blocks = blocks
        self.written = written

    @property
    def room(self) -> int:
        return self.blocks[0].size(2)

    def moved(
        self, sentences: Int[Tensor, " selected"], keys: Int[Tensor, "selected kept"], spare: int
    ) -> KeyPool:
        """A new pool with the given keys of each sentence, in that order, and ``spare`` room."""
        selected, kept = keys.shape
        halves = 2 * sentences[:, None] + torch.arange(2, device=keys.device)
        places = (halves[:, :, None] * self.room + keys[:, None]).flatten()
        blocks = []
        for block in self.blocks:
            width = block.size(3)
            new = block.new_empty(selected, 2, kept + spare, width)
            selection = block.flatten(0, 2).index_select(0, places)
            new[:, :, :kept] = selection.view(selected, 2, kept, width)
            blocks.append(new)
        return KeyPool(blocks, kept)


@dataclass(frozen=True)
class PooledState:
    """The fast decoder's state, a value like the plain state.

    ``ancestry`` (sentences, width, keys) is the mask over the pool, 0 or -inf. It is None as long
    as each sentence has only one target, which sees all keys. ``memory_mask`` is of the same kind,
    and None if no source is padded.
    """

    pool: KeyPool
    keys: int  # of the pool; the keys behind them belong to a later state
    ancestry: Float[Tensor, "sentences width keys"] | None
    memory: list[Tensor]  # for each block (sentences, 2, src_len, d_model), keys first
    memory_mask: Float[Tensor, "sentences 1 1 src_len"] | None
    width: int = 1
    length: int = 0
    """The number of target tokens read so far."""

    @property
    def sentences(self) -> int:
        return self.memory[0].size(0)

    @property
    def mask(self) -> Float[Tensor, "sentences 1 width keys"] | None:
        """The ancestry, with an axis for the heads."""
        return None if self.ancestry is None else self.ancestry[:, None]

    def cache(self, block: int) -> Float[Tensor, "sentences 2 keys d_model"]:
        """This state's keys and values of one block: a view of the pool."""
        return self.pool.blocks[block][:, :, : self.keys]

    def select(self, rows: Int[Tensor, " selected"]) -> PooledState:
        """The state of the given rows, each a separate sentence; see the plain state."""
        return self.select_beams(rows[:, None])

    def select_beams(self, rows: Int[Tensor, "selected width"]) -> PooledState:
        """The state of the given rows; those in one line belong to one sentence."""
        sentences = torch.div(rows[:, 0], self.width, rounding_mode="floor")
        ancestry = self.ancestry
        if ancestry is not None:
            ancestry = ancestry.flatten(0, 1)[rows]  # (selected, width, keys)
        if sentences.equal(torch.arange(self.sentences, device=rows.device)):
            return replace(self, ancestry=ancestry, width=rows.size(1))
        pool, ancestry = self._compacted(sentences, ancestry, rows.size(1))
        mask = self.memory_mask
        return PooledState(
            pool,
            pool.written,
            ancestry,
            [block.index_select(0, sentences) for block in self.memory],
            None if mask is None else mask.index_select(0, sentences),
            rows.size(1),
            self.length,
        )

    def grown(self) -> PooledState:
        """The state after one more step; the step then writes its keys at the end of `cache`.

        The new state gets a new pool if this one is full, or if another state has already written
        behind this state's keys.
        """
        pool, keys, ancestry = self.pool, self.keys, self.ancestry
        if pool.written != keys or keys + self.width > pool.room:
            sentences = torch.arange(self.sentences, device=self.memory[0].device)
            pool, ancestry = self._compacted(sentences, ancestry, self.width)
            keys = pool.written
        if ancestry is not None or self.width > 1:
            newest = _diagonal(self.memory[0], self.width).expand(self.sentences, -1, -1)
            if ancestry is None:
                ancestry = newest.new_zeros(self.sentences, self.width, keys)
            ancestry = torch.cat((ancestry, newest), dim=2)
        pool.written = keys + self.width
        return replace(
            self, pool=pool, keys=pool.written, ancestry=ancestry, length=self.length + 1
        )

    def _compacted(
        self, sentences: Int[Tensor, " selected"], ancestry: Tensor | None, width: int
    ) -> tuple[KeyPool, Float[Tensor, "selected width kept"] | None]:
        """A new pool of the keys that a beam uses, with spare room of half their number."""
        if ancestry is None:
            kept = torch.arange(self.keys, device=sentences.device).expand(len(sentences), -1)
        else:
            used = ancestry.amax(dim=1) == 0  # (selected, keys)
            most = int(used.sum(dim=1).max()) if len(used) else 0
            # A stable sort puts used keys first. A sentence with fewer of them keeps unused ones.
            kept = used.int().argsort(dim=1, descending=True, stable=True)[:, :most]
            ancestry = ancestry.gather(2, kept[:, None].expand(-1, width, -1))
        spare = max(kept.size(1) // 2, _MIN_STEPS * width)
        return self.pool.moved(sentences, kept, spare), ancestry


def _diagonal(like: Tensor, width: int) -> Float[Tensor, "width width"]:
    """0 on the diagonal, -inf elsewhere: each beam sees only its own newest key."""
    hidden = torch.full((width, width), -torch.inf, dtype=like.dtype, device=like.device)
    return hidden.fill_diagonal_(0.0)
