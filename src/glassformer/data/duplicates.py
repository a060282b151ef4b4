"""Finds sentences that occur again by their 64-bit hashes: eight bytes a sentence, no text.

Equal hashes count as equal sentences. Among a hundred million, this is wrong for less than one pair
in a thousand corpora. Python's hash of a text differs between processes, so no hash leaves the
process that made it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["NONE", "Known", "hashes", "pair_hashes", "repeats"]

#: The hash of an empty sentence, which equals no other.
NONE = np.uint64(0)
_BUCKETS = 16  # parts that are sorted one after the other: less memory, the same result


def hashes(texts: Sequence[str]) -> NDArray[np.uint64]:
    """A number for each text; :data:`NONE` for an empty one."""
    signed = np.fromiter(map(hash, texts), dtype=np.int64, count=len(texts))
    return signed.view(np.uint64)  # Python's hash of the empty text is 0


def pair_hashes(source: NDArray[np.uint64], target: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A number for each pair; :data:`NONE` where a side is empty.

    >>> pairs = pair_hashes(hashes(["a", "b", "a", "a"]), hashes(["b", "a", "b", ""]))
    >>> bool(pairs[0] == pairs[2] != pairs[1]), int(pairs[3])
    (True, 0)
    """
    # The odd factor tells (a, b) from (b, a).
    mixed = source * np.uint64(0x9E3779B97F4A7C15) + target
    return np.where((source == NONE) | (target == NONE), NONE, mixed)


def repeats(values: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """For each of ``values``, whether it repeats an earlier value.

    >>> np.flatnonzero(repeats(hashes(["a", "b", "a", "", "", "b", "a"]))).tolist()
    [2, 5, 6]
    """
    again = values != NONE
    # Any byte of a hash is as good as the others.
    bucket_of = values.view(np.uint8).reshape(-1, values.itemsize)[:, 0] % _BUCKETS
    for bucket in range(_BUCKETS):
        rows = np.flatnonzero(bucket_of == bucket)
        again[rows[np.unique(values[rows], return_index=True)[1]]] = False
    return again


class Known:
    """A set of hashes, and a mark on each that occurs elsewhere.

    >>> known = Known(hashes(["a", "b", "c"]))
    >>> known.see(hashes(["c", "x", "a", ""]))
    >>> known.seen(hashes(["c", "b", "a", "a", ""])).tolist()
    [True, False, True, True, False]
    """

    def __init__(self, values: NDArray[np.uint64]) -> None:
        self._values = np.unique(values[values != NONE])
        self._seen = np.zeros(len(self._values), dtype=np.bool_)

    def see(self, values: NDArray[np.uint64]) -> None:
        """Mark the known hashes that are among ``values``."""
        places = np.searchsorted(self._values, values)
        inside = places < len(self._values)
        places = places[inside]
        self._seen[places[self._values[places] == values[inside]]] = True

    def seen(self, values: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """For each of ``values``, whether it is known and marked."""
        return np.isin(values, self._values[self._seen])
