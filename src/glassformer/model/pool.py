"""The decoder's state once more, for speed: no key is copied when beams change places.

The plain form is :class:`glassformer.model.state.DecoderState`; tests hold the two equal. What
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
        chosen = replace(self, ancestry=ancestry, width=rows.size(1))
        everyone = torch.arange(self.sentences, device=rows.device)
        if sentences.equal(everyone):
            return chosen
        mask = self.memory_mask
        return replace(
            chosen._compacted(sentences),
            memory=[block.index_select(0, sentences) for block in self.memory],
            memory_mask=None if mask is None else mask.index_select(0, sentences),
        )

    def with_room(self) -> PooledState:
        """The same state, in a pool that the keys of one more step can be written to."""
        if self.pool.written == self.keys and self.keys + self.width <= self.pool.room:
            return self
        return self._compacted(torch.arange(self.sentences, device=self.memory[0].device))

    def grown(self) -> PooledState:
        """The state after a step that wrote its keys, behind the others, into the pool."""
        ancestry = self.ancestry
        if ancestry is not None or self.width > 1:
            own = _own_key_only(self.memory[0], self.width).expand(self.sentences, -1, -1)
            if ancestry is None:
                ancestry = own.new_zeros(self.sentences, self.width, self.keys)
            ancestry = torch.cat((ancestry, own), dim=2)
        self.pool.written = self.keys + self.width
        return replace(self, ancestry=ancestry, keys=self.keys + self.width, length=self.length + 1)

    def _compacted(self, sentences: Int[Tensor, " selected"]) -> PooledState:
        """Move the keys that somebody descends from to a new pool, with room to grow by half."""
        if self.ancestry is None:
            keys = torch.arange(self.keys, device=sentences.device).expand(len(sentences), -1)
            ancestry = None
        else:
            used = self.ancestry.amax(dim=1) == 0  # (selected, keys)
            kept = int(used.sum(dim=1).max()) if len(used) else 0
            # A stable sort puts used keys first. A sentence that has fewer keeps some unused ones.
            keys = used.int().argsort(dim=1, descending=True, stable=True)[:, :kept]
            ancestry = self.ancestry.gather(2, keys[:, None].expand(-1, self.width, -1))
        spare = max(keys.size(1) // 2, _STEPS * self.width)
        pool = self.pool.moved(sentences, keys, spare)
        return replace(self, pool=pool, keys=pool.written, ancestry=ancestry)


def _own_key_only(like: Tensor, width: int) -> Float[Tensor, "width width"]:
    """0 on the diagonal, -inf elsewhere: of the newest keys each target sees its own."""
    others = torch.full((width, width), -torch.inf, dtype=like.dtype, device=like.device)
    return others.fill_diagonal_(0.0)
