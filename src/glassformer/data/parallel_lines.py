"""Tells from lengths and marks whether line n of one side belongs to line n of the other side.

A sentence and its translation are about equally long; by this fact Gale and Church (1993) align
sentences. In a corpus that is sorted by length, a line is as long as its neighbours. So the mark of
a line counts too: a question is the translation of a question.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glassformer.data.corpus import Pair

__all__ = [
    "RUINOUS",
    "Features",
    "Shift",
    "features",
    "many_equal",
    "ruinous",
    "shifts",
    "slip",
    "unrelated",
]

#: The texts of the faults that make a training useless, by the codes in the doctor's report.
RUINOUS = {
    "same-text": "most pairs have the same text on both sides: is one file given twice, or a side"
    " not translated?",
    "shifted": "the sides are shifted against each other, by their lines' lengths: put the missing"
    " line in, or take the extra line out",
    "unrelated": "the lengths of the two sides have nothing to do with each other: is one side"
    " sorted, shuffled, or of another text?",
}

#: The length and the mark of each line in 16 bits; a line that tells nothing has a length of 0.
Features = NDArray[np.uint16]

_MARKS = tuple(re.compile(marks) for marks in ("[?？؟]", "[!！]", r"\d"))
_LONGEST = 2**14 - 1
_FARTHEST = 10  # the greatest offset in lines
_BLOCK = 50  # the least number of lines in a block, which has one offset
_MOST_BLOCKS = 20_000
#: With a correlation of one half, so much log likelihood comes with a unit of a feature product.
_WEIGHT = 0.5 / (1 - 0.5**2)
_SWITCH = 40.0  # the log likelihood that a change of the offset must gain
#: A shift must raise the correlations by so much, and by so many standard deviations of chance.
_LEAST_GAIN, _LEAST_DEVIATIONS = 0.05, 4.0
_LEAST_SPREAD = 0.1  # the least spread of log lengths or of a mark that tells something
_LEAST_LINES, _LEAST_CORRELATION = 200, 0.1
_SENTENCE = 30  # the least characters of both sides together
_MOSTLY_EQUAL, _LEAST_EQUAL = 0.5, 10  # share and number of pairs with equal sides


def features(texts: Sequence[str]) -> Features:
    """The features of some lines; a line's mark is a question, an exclamation or a digit.

    >>> (features(["Ja.", "Ja?", ""]) >> 2).tolist(), (features(["Ja.", "Ja?", ""]) & 3).tolist()
    ([3, 3, 0], [0, 1, 0])
    """
    return np.fromiter(map(_feature, texts), np.uint16, len(texts))


def _feature(text: str) -> int:
    mark = next((n for n, pattern in enumerate(_MARKS, start=1) if pattern.search(text)), 0)
    return 4 * min(len(text), _LONGEST) + mark


@dataclass(frozen=True)
class Shift:
    """In lines ``first`` to ``last``, source line n belongs to target line n + ``offset``.

    The first line of a side has the number 1.
    """

    first: int
    last: int
    offset: int


def shifts(source: Features, target: Features) -> list[Shift]:
    """The stretches of lines in which the sides are shifted against each other.

    Each block of lines has an offset. Dynamic programming (Viterbi 1967) finds the path of offsets
    with the greatest likelihood. A change of the offset has a cost, so that chance makes no change.

    >>> lengths = 4 * np.random.default_rng(0).integers(20, 200, 300).astype(np.uint16)
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
    lines = [0, *(products.change(at, block=block, path=path) for at in changes), len(source)]
    stretches = []
    for number, offset in enumerate(path[at] for at in edges[:-1]):
        gains = sums[edges[number] : edges[number + 1]]
        gain = float((gains[:, offset] - gains[:, _FARTHEST]).sum())
        first, last = lines[number], lines[number + 1]
        if offset != _FARTHEST and gain >= products.least_gain(last - first):
            stretches.append(Shift(first + 1, last, offset - _FARTHEST))
    return stretches


def unrelated(source: Features, target: Features) -> str | None:
    """The fault's code if the sides, which have equally many lines, are unrelated; else None.

    The lengths of words tell nothing, so the sides must hold sentences. If most lines are words, as
    in a dictionary, the code is milder.

    >>> lengths = 4 * np.random.default_rng(0).integers(20, 200, 300).astype(np.uint16)
    >>> unrelated(lengths, lengths), unrelated(lengths, np.sort(lengths))
    (None, 'unrelated')
    """
    products = _Products(source, target)
    paired = (source > 3) & (target > 3)
    sentences = np.count_nonzero(paired & ((source >> 2) + (target >> 2) >= _SENTENCE))
    if sentences < _LEAST_LINES or not products.lengths_vary:
        return None
    blocks = range(0, len(source), 1 << 16)
    total = sum(products.sums(start, start + (1 << 16))[_FARTHEST] for start in blocks)
    if total >= _LEAST_CORRELATION * np.count_nonzero(paired):
        return None
    return "unrelated" if 2 * sentences > np.count_nonzero(paired) else "unrelated-words"


def many_equal(pairs: int) -> float:
    """With so many pairs of equal sides, both files count as one text."""
    return max(_LEAST_EQUAL, _MOSTLY_EQUAL * pairs)


def ruinous(pairs: Sequence[Pair]) -> str | None:
    """The doctor's text of the fault that makes a training on ``pairs`` useless; or None.

    >>> ruinous([Pair("A dog.", "A dog.")] * 20)[:43]
    'most pairs have the same text on both sides'
    """
    if sum(pair.source == pair.target for pair in pairs) >= many_equal(len(pairs)):
        return RUINOUS["same-text"]
    source, target = (features([pair[side] for pair in pairs]) for side in (0, 1))
    code = "shifted" if shifts(source, target) else unrelated(source, target)
    return RUINOUS.get(code or "")


class _Products:
    """Products of both sides' standardised features, summed over some lines at each offset."""

    def __init__(self, source: Features, target: Features) -> None:
        beyond = max(0, len(source) - len(target))
        self._source, self._target = source, np.pad(target, (_FARTHEST, _FARTHEST + beyond))
        tables = list(zip(_standard(source), _standard(target), strict=True))
        self._tables = [(left, right) for left, right in tables if left.any() and right.any()]
        #: Whether the lengths of both sides tell anything.
        self.lengths_vary = all(table.any() for table in tables[0])

    def least_gain(self, lines: int) -> float:
        """The sum by which another offset must be better over the given number of lines."""
        deviation = np.sqrt(2 * len(self._tables) * lines)
        return float(max(_LEAST_GAIN * lines, _LEAST_DEVIATIONS * deviation))

    def sums(self, start: int, stop: int) -> NDArray[np.float64]:
        """The sum of the products of lines ``start`` to ``stop``, at each offset from -10 to 10."""
        total = np.zeros(2 * _FARTHEST + 1)
        source, target = self._lines(start, stop)
        for left, right in self._tables:
            total += np.correlate(right[target], left[source], "valid")
        return total

    def _lines(self, start: int, stop: int) -> tuple[Features, Features]:
        source = self._source[start:stop]
        return source, self._target[start : start + len(source) + 2 * _FARTHEST]

    def change(self, at: int, *, block: int, path: list[int]) -> int:
        """The line from which block ``at``'s offset fits better than the earlier block's."""
        start = (at - 1) * block
        source, target = self._lines(start, start + 2 * block)
        gains = np.zeros(len(source))
        for left, right in self._tables:
            before, after = (
                right[target[offset : offset + len(source)]] for offset in path[at - 1 : at + 1]
            )
            gains += left[source] * (before - after)
        return start + int(np.argmax(np.concatenate([[0.0], np.cumsum(gains)])))


def _standard(lines: Features) -> list[NDArray[np.float32]]:
    """The tables of standardised log lengths and marks, with a number for each feature value.

    All numbers are from -3 to 3. A table is zero if nearly all lines are alike in its feature.
    """
    values = np.arange(1 << 16)
    counts = np.bincount(lines, minlength=1 << 16)
    counts[:4] = 0
    total = max(1, counts.sum())
    tables = []
    for feature in (np.log1p(values >> 2), *((values & 3) == mark for mark in (1, 2, 3))):
        mean = (feature * counts).sum() / total
        spread = float(np.sqrt(((feature - mean) ** 2 * counts).sum() / total))
        table = np.clip((feature - mean) / max(spread, _LEAST_SPREAD), -3, 3).astype(np.float32)
        table[:4] = 0
        tables.append(table if spread >= _LEAST_SPREAD else np.zeros_like(table))
    return tables


def _best_path(scores: NDArray[np.floating]) -> list[int]:
    """The path of columns with the greatest sum; a change of column costs ``_SWITCH``."""
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


def slip(longer: Features, shorter: Features) -> int:
    """The line where the longer file's surplus lines begin, computed from all lines' lengths.

    The function compares log lengths, each less its file's median. For each line k, it moves the
    lines from k on by the surplus. It returns the k with the least differences.
    """
    extra = len(longer) - len(shorter)
    small, large = np.log1p(shorter >> 2), np.log1p(longer >> 2)
    small, large = small - np.median(small), large - np.median(large)
    straight = np.abs(large[: len(shorter)] - small)
    moved = np.abs(large[extra:] - small)
    gain = np.concatenate([[0.0], np.cumsum(straight - moved, dtype=float)])
    # The last of equal sums wins, so that lines without evidence count as paired.
    return len(gain) - int(np.argmin(gain[::-1]))
