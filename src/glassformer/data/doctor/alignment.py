"""Whether line n of one side belongs to line n of the other, judged by the lengths of the lines.

A sentence and its translation are about equally long. Gale and Church (1993) align sentences by
that rule. A length is a number of characters in 16 bits; 0 stands for a line without evidence.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Shift", "Sizes", "shifts", "slip", "unrelated"]

Sizes = NDArray[np.uint16]

_FARTHEST = 10  # lines: the greatest offset that is tried
_BLOCK = 50  # lines, at least: each block has one offset
_MOST_BLOCKS = 20_000
#: The log likelihood ratio of a correlation of one half, for a product of two standard lengths.
_WEIGHT = 0.5 / (1 - 0.5**2)
_SWITCH = 40.0  # the log likelihood that a change of the offset must bring
_LEAST_GAIN = 0.3  # of the correlation, where a shift is believed
_LEAST_SPREAD = 0.1  # of the log lengths: if all lines are equally long, they tell nothing
_LEAST_LINES, _LEAST_CORRELATION = 200, 0.1


@dataclass(frozen=True)
class Shift:
    """In lines ``first`` to ``last``, source line n belongs to target line n + ``offset``.

    Lines count from 1.
    """

    first: int
    last: int
    offset: int


def shifts(source: Sizes, target: Sizes) -> list[Shift]:
    """The stretches of lines in which the sides are shifted against each other.

    Each block of lines has an offset. The path of offsets with the greatest likelihood is found by
    dynamic programming (Viterbi 1967). A change of the offset costs, so that chance makes none.

    >>> lengths = np.random.default_rng(0).integers(20, 200, 300).astype(np.uint16)
    >>> shifts(lengths, lengths)
    []
    >>> (shift,) = shifts(lengths, np.delete(lengths, 99))  # target line 100 is missing
    >>> shift.offset, abs(shift.first - 101) < 5, shift.last
    (-1, True, 300)
    """
    block = max(_BLOCK, -(-len(source) // _MOST_BLOCKS))
    products = _Products(source, target)
    starts = range(0, len(source), block)
    if not starts:
        return []
    sums = np.stack([products.sums(start, start + block) for start in starts])
    path = _best_path(_WEIGHT * sums)
    changes = [at for at in range(1, len(path)) if path[at] != path[at - 1]]
    edges = [0, *changes, len(path)]
    lines = [0, *(products.change(at, block, path) for at in changes), len(source)]
    found = []
    for number, offset in enumerate(path[at] for at in edges[:-1]):
        gains = sums[edges[number] : edges[number + 1]]
        gain = float((gains[:, offset] - gains[:, _FARTHEST]).sum())
        first, last = lines[number], lines[number + 1]
        if offset != _FARTHEST and gain >= _LEAST_GAIN * (last - first):
            found.append(Shift(first + 1, last, offset - _FARTHEST))
    return found


def unrelated(source: Sizes, target: Sizes) -> bool:
    """Whether the lengths of the sides have nothing to do with each other.

    >>> lengths = np.random.default_rng(0).integers(20, 200, 300).astype(np.uint16)
    >>> unrelated(lengths, lengths), unrelated(lengths, np.sort(lengths))
    (False, True)
    """
    products = _Products(source, target)
    lines = int(np.count_nonzero((source > 0) & (target > 0)))
    if lines < _LEAST_LINES or not products.informative:
        return False
    blocks = range(0, len(source), 1 << 16)
    total = sum(products.sums(start, start + (1 << 16))[_FARTHEST] for start in blocks)
    return bool(total < _LEAST_CORRELATION * lines)


class _Products:
    """Sums of products of the sides' standard log lengths, over some lines and at each offset."""

    def __init__(self, source: Sizes, target: Sizes) -> None:
        self._source, self._target = source, np.pad(target, _FARTHEST)
        if len(target) < len(source):
            self._target = np.pad(self._target, (0, len(source) - len(target)))
        self._left, self._right = _standard(source), _standard(target)
        self.informative = bool(self._left.any() and self._right.any())

    def sums(self, start: int, stop: int) -> NDArray[np.float32]:
        """One sum for each offset from -10 to 10."""
        source, target = self._lines(start, stop)
        return np.correlate(target, source, "valid")

    def _lines(self, start: int, stop: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        source = self._source[start:stop]
        target = self._target[start : start + len(source) + 2 * _FARTHEST]
        return self._left[source], self._right[target]

    def change(self, at: int, block: int, path: list[int]) -> int:
        """The line from which the offset of block ``at`` fits better than that before it."""
        start = (at - 1) * block
        source, target = self._lines(start, start + 2 * block)
        before, after = (
            source * target[offset : offset + len(source)] for offset in path[at - 1 : at + 1]
        )
        return start + int(np.argmax(np.concatenate([[0.0], np.cumsum(before - after)])))


def _standard(sizes: Sizes) -> NDArray[np.float32]:
    """The standard log length for each length, at most 3; zeros if all lines are as long."""
    counts = np.bincount(sizes, minlength=1 << 16)
    counts[0] = 0
    logs = np.log1p(np.arange(1 << 16))
    total = max(1, counts.sum())
    mean = (logs * counts).sum() / total
    spread = np.sqrt(((logs - mean) ** 2 * counts).sum() / total)
    if spread < _LEAST_SPREAD:
        return np.zeros(1 << 16, np.float32)
    table = np.clip((logs - mean) / spread, -3, 3).astype(np.float32)
    table[0] = 0
    return table


def _best_path(scores: NDArray[np.floating]) -> list[int]:
    """The column of each row with the greatest sum; each change costs ``_SWITCH``."""
    columns = np.arange(scores.shape[1])
    best = scores[0] - _SWITCH * (columns != _FARTHEST)
    origins = []
    for row in scores[1:]:
        top = int(np.argmax(best))
        origins.append(np.where(best >= best[top] - _SWITCH, columns, top))
        best = np.maximum(best, best[top] - _SWITCH) + row
    path = [int(np.argmax(best))]
    for origin in reversed(origins):
        path.append(int(origin[path[-1]]))
    return path[::-1]


def slip(longer: Sizes, shorter: Sizes) -> int:
    """The line from which the longer file has surplus lines, judged by the lengths of all lines.

    For each line k, the lines before k are compared as they stand, the lines from k on moved by
    the surplus. The files part at the k whose log lengths, each less its file's median, agree best.
    """
    extra = len(longer) - len(shorter)
    small, large = np.log1p(shorter), np.log1p(longer)
    small, large = small - np.median(small), large - np.median(large)
    straight = np.abs(large[: len(shorter)] - small)
    moved = np.abs(large[extra:] - small)
    gain = np.concatenate([[0.0], np.cumsum(straight - moved, dtype=float)])
    # Among equals the last, so that lines without evidence count as paired.
    return len(gain) - int(np.argmin(gain[::-1]))
