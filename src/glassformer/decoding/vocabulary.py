"""The ids of a vocabulary that have a meaning of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["DEFAULT_IDS", "SpecialIds", "Vocabulary"]


@runtime_checkable
class SpecialIds(Protocol):
    """The four special ids; a tokenizer and a model's config have these attributes."""

    pad_id: int
    unk_id: int
    bos_id: int
    eos_id: int


@dataclass(frozen=True)
class Vocabulary:
    """The four special ids, the ids that begin every target, and the ids of white space.

    `prefix_ids` begin every target, with a language for example. `blank_ids` are white space.

    >>> Vocabulary(bos_id=7).never_produced
    (0, 1, 7)
    """

    pad_id: int = 0
    unk_id: int = 1
    bos_id: int = 2
    eos_id: int = 3
    prefix_ids: tuple[int, ...] = ()
    blank_ids: frozenset[int] = frozenset()

    @classmethod
    def of(cls, ids: SpecialIds) -> "Vocabulary":
        """The ids of a tokenizer or a config; a config has special ids alone."""
        prefix, blank = getattr(ids, "prefix_ids", ()), getattr(ids, "blank_ids", ())
        special = ids.pad_id, ids.unk_id, ids.bos_id, ids.eos_id
        return cls(*special, prefix_ids=tuple(prefix), blank_ids=frozenset(blank))

    @property
    def never_produced(self) -> tuple[int, ...]:
        """The ids that no translation holds: padding, unknown, start."""
        return tuple(sorted({self.pad_id, self.unk_id, self.bos_id} - {self.eos_id}))

    def wrong_in_prefix(self, prefix: Sequence[int]) -> list[int]:
        """The special and negative ids of a forced prefix, except an end symbol at its end.

        >>> Vocabulary().wrong_in_prefix([5, 2, -1, 3]), Vocabulary().wrong_in_prefix([3, 5])
        ([2, -1], [3])
        """
        special, last = {*self.never_produced, self.eos_id}, len(prefix) - 1
        return [
            token
            for place, token in enumerate(prefix)
            if token < 0 or (token in special and not (token == self.eos_id and place == last))
        ]


DEFAULT_IDS = Vocabulary()
