"""Finds repeated sentences by their 64-bit hashes, which take eight bytes a sentence.

Equal hashes count as equal sentences. In a thousand corpora of a hundred million sentences, less
than one pair of different sentences has equal hashes. Python's hash of a text differs between
processes, so no hash leaves its process.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["NONE", "Known", "hashes", "pair_hashes", "repeats"]

#: The hash of an empty sentence, which equals no other.
NONE = np.uint64(0)
_BUCKETS = 16  # sorting one bucket after another takes less memory


def hashes(texts: Sequence[str]) -> NDArray[np.uint64]:
    """A number for each text; an empty text has :data:`NONE`."""
    signed = np.fromiter(map(hash, texts), dtype=np.int64, count=len(texts))
    return signed.view(np.uint64)  # Python's hash of the empty text is 0


def pair_hashes(source: NDArray[np.uint64], target: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A number for each pair; a pair with an empty side has :data:`NONE`.

    >>> pairs = pair_hashes(hashes(["a", "b", "a", "a"]), hashes(["b", "a", "b", ""]))
    >>> bool(pairs[0] == pairs[2] != pairs[1]), int(pairs[3])
    (True, 0)
    """
    # With the odd factor, (a, b) and (b, a) have different hashes.
    mixed = source * np.uint64(0x9E3779B97F4A7C15) + target
    return np.where((source == NONE) | (target == NONE), NONE, mixed)


def repeats(values: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """True for each of ``values`` that repeats an earlier value.

    >>> np.flatnonzero(repeats(hashes(["a", "b", "a", "", "", "b", "a"]))).tolist()
    [2, 5, 6]
    """
    again = values != NONE
    # Any byte of a hash would serve.
    bucket_of = values.view(np.uint8).reshape(-1, values.itemsize)[:, 0] % _BUCKETS
    for bucket in range(_BUCKETS):
        rows = np.flatnonzero(bucket_of == bucket)
        again[rows[np.unique(values[rows], return_index=True)[1]]] = False
    return again


class Known:
    """A set of hashes, each with a mark if the hash occurs elsewhere.

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
        """True for each of ``values`` that is known and marked."""
        return np.isin(values, self._values[self._seen])
