"""The decoder's state once more, for speed: no key is copied when beams change places.

The plain form is :class:`glassformer.model.cache.DecoderState`; tests hold the two equal. What
differs:

- Rows come in groups: the ``width`` unfinished targets of one sentence lie side by side. They share
  the keys and values of the memory, and one pool of those of their own tokens.
- A beam that changes its place takes no keys along. It remembers which keys of the pool are its
  ancestors', in a mask that is added to the scores: 0 for an ancestor, -inf for another's.
- The pool has room for keys to come. When it is full, keys without living descendants are
  forgotten; after a while all beams of a sentence come from one, so few remain. Only then, and
  when sentences leave, is anything copied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["KeyPool", "PooledState"]

_STEPS = 8  # a new pool has room for at least so many steps


class KeyPool:
    """Keys and values of every decoder block, and how many of them are written.

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
        """A new pool: of each sentence the chosen keys, in that order, and ``spare`` room."""
        selected, kept = keys.shape
        halves = 2 * sentences[:, None] + torch.arange(2, device=keys.device)
        places = (halves[:, :, None] * self.room + keys[:, None]).flatten()
        blocks = []
        for block in self.blocks:
            width = block.size(3)
            new = block.new_empty(selected, 2, kept + spare, width)
            chosen = block.flatten(0, 2).index_select(0, places)
            new[:, :, :kept] = chosen.view(selected, 2, kept, width)
            blocks.append(new)
        return KeyPool(blocks, kept)


@dataclass(frozen=True)
class PooledState:
    """All that the fast decoder needs for its next step, as a value like the plain state.

    ``ancestry`` (sentences, width, keys) is 0 or -inf; None where each target sees all keys, as
    long as each sentence has only one. ``memory_mask`` is of the same kind; None where no source
    is padded.
    """

    pool: KeyPool
    keys: int  # of the pool; those behind belong to a state that came after this one
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
        """The ancestry as the scores of all heads take it."""
        return None if self.ancestry is None else self.ancestry[:, None]

    def own(self, block: int) -> Float[Tensor, "sentences 2 keys d_model"]:
        """The keys and values of one block that belong to this state: a view of the pool."""
        return self.pool.blocks[block][:, :, : self.keys]

    def select(self, rows: Int[Tensor, " selected"]) -> PooledState:
        """The state of the given rows, each as a sentence of its own; see the plain state."""
        return self.select_beams(rows[:, None])

    def select_beams(self, rows: Int[Tensor, "selected width"]) -> PooledState:
        """The same with several rows side by side, all of one sentence."""
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
        """The state after one more step, whose keys are still to be written: the newest of `own`.

        Where the pool has no room behind this state's keys, or a state that came after this one
        has already written there, the new state has a pool of its own.
        """
        pool, keys, ancestry = self.pool, self.keys, self.ancestry
        if pool.written != keys or keys + self.width > pool.room:
            everyone = torch.arange(self.sentences, device=self.memory[0].device)
            pool, ancestry = self._compacted(everyone, ancestry, self.width)
            keys = pool.written
        if ancestry is not None or self.width > 1:
            newest = _own_key_only(self.memory[0], self.width).expand(self.sentences, -1, -1)
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
        """A new pool of the keys that somebody descends from, with room to grow by half."""
        if ancestry is None:
            kept = torch.arange(self.keys, device=sentences.device).expand(len(sentences), -1)
        else:
            used = ancestry.amax(dim=1) == 0  # (selected, keys)
            most = int(used.sum(dim=1).max()) if len(used) else 0
            # A stable sort puts used keys first. A sentence that has fewer keeps some unused ones.
            kept = used.int().argsort(dim=1, descending=True, stable=True)[:, :most]
            ancestry = ancestry.gather(2, kept[:, None].expand(-1, width, -1))
        spare = max(kept.size(1) // 2, _STEPS * width)
        return self.pool.moved(sentences, kept, spare), ancestry


def _own_key_only(like: Tensor, width: int) -> Float[Tensor, "width width"]:
    """0 on the diagonal, -inf elsewhere: of the newest keys each target sees its own."""
    others = torch.full((width, width), -torch.inf, dtype=like.dtype, device=like.device)
    return others.fill_diagonal_(0.0)
