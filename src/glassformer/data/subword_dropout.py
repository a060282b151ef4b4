"""Random segmentations of words, the same for the same seed on any machine and in any process.

SentencePiece can sample as well, but mixes a number of the process into its seed (0.2.3 does):
a run that is continued would draw other segmentations than one that never stopped. So they are
drawn here, from the ids of the usual segmentation. Words are taken one by one, as their pieces end
at spaces; a word that a special piece (a byte, say) is part of keeps its usual pieces.

The same words come again and again, so every segmentation that was made once is kept: drawing is
then choosing a number, for all words of many lines at once.

Sources: Provilkov et al. 2020, section 3 (BPE-dropout); Kudo 2018, section 3.3 (unigram).
"""

import heapq
import math
import random
from array import array
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from glassformer.errors import UsageError

__all__ = ["Piece", "SubwordSampler", "sampler_of"]

_SPACE = "\u2581"  # what SentencePiece writes for a space
_MOST_KEPT = 500_000  # segmentations; beyond them the memory is begun anew


@dataclass(frozen=True)
class Piece:
    """A subword: its id, and its score: of the log-probability (unigram) or the merge's rank."""

    id: int
    score: float


@dataclass(frozen=True)
class _Lattice:
    """A word for unigram sampling: for each end, the pieces that end there and their odds."""

    ends: list[list[tuple[int, int]]]  # begin and id
    odds: list[list[float]]  # cumulated


class SubwordSampler:
    """Draws segmentations of words with the pieces of a BPE or a unigram model.

    ``texts`` says what each id spells, and ``pieces`` are those that may be drawn.

    >>> pieces = {"a": Piece(0, -9.0), "b": Piece(1, -9.0), "ab": Piece(2, 0.0)}
    >>> sampler = SubwordSampler("bpe", pieces, ["a", "b", "ab"], dropout=0.5)
    >>> ids, lengths = sampler.sample(np.array([2, 2, 2]), np.array([1, 1, 1]), seed=1)
    >>> ids.tolist(), lengths.tolist()
    ([0, 1, 2, 0, 1], [2, 1, 2])
    """

    def __init__(
        self,
        kind: Literal["bpe", "unigram"],
        pieces: Mapping[str, Piece],
        texts: Sequence[str],
        *,
        dropout: float,
    ) -> None:
        self.kind = kind
        self.pieces = pieces
        self.texts = texts
        self.dropout = dropout
        self.longest = max(map(len, pieces), default=1)
        self._begins = np.array([text.startswith(_SPACE) for text in texts], dtype=np.bool_)
        self._forget()

    def _forget(self) -> None:
        # A segmentation is a number; its ids lie between two ends.
        self._ids, self._ends = array("I"), array("q", [0])
        self._usual: dict[bytes, int] = {}  # of a word's usual ids
        # Of BPE: how many merges it has, what was dropped, and what it is with one more dropped.
        self._merges = array("I")
        self._dropped: list[tuple[str, tuple[int, ...]]] = []
        self._less: dict[tuple[int, int], int] = {}
        # Of unigram: all segmentations of a word at once, and those that were drawn.
        self._lattices: dict[int, _Lattice] = {}
        self._drawn: dict[tuple[int, ...], int] = {}

    def sample(
        self, ids: NDArray[Any], lengths: NDArray[Any], *, seed: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Lines of usual ids, one after the other, with each word's segmentation drawn.

        ``lengths`` are those of the lines; returned are the ids and the lengths that they now have.
        """
        if len(self._merges) > _MOST_KEPT:
            self._forget()
        first_ids = np.cumsum(lengths) - lengths
        starts = self._begins[ids]
        starts[first_ids[lengths > 0]] = True
        words = np.flatnonzero(starts)
        chosen = self._known(np.asarray(ids, dtype=np.uint32), words)
        if self.kind == "bpe":
            self._drop_merges(chosen, np.random.default_rng(seed))
        else:
            self._walk(chosen, random.Random(seed))
        ends = np.array(self._ends)
        begins = ends[chosen]
        sizes = ends[chosen + 1] - begins
        after = np.cumsum(sizes)
        places = np.arange(sizes.sum()) + np.repeat(begins - (after - sizes), sizes)
        # What has been written before each line's first word, and before the next line's.
        before = np.concatenate([[0], after])
        bounds = np.searchsorted(words, np.concatenate([first_ids, [len(ids)]]))
        return np.array(self._ids)[places], np.diff(before[bounds])

    def _known(self, ids: NDArray[np.uint32], words: NDArray[np.intp]) -> NDArray[np.int64]:
        """The usual segmentations of words, which begin at ``words``, as numbers."""
        spelt = ids.tobytes()
        bounds = (np.append(words, len(ids)) * ids.itemsize).tolist()
        keys = [spelt[begin:end] for begin, end in pairwise(bounds)]
        for key in set(keys) - self._usual.keys():
            self._usual[key] = self._study(np.frombuffer(key, dtype=np.uint32).tolist())
        return np.fromiter(map(self._usual.__getitem__, keys), dtype=np.int64, count=len(keys))

    def _study(self, word: list[int]) -> int:
        """Keeps a word: its usual pieces, and what drawing needs to know of it."""
        text = "".join(self.texts[index] for index in word)
        if len(text) > 1 and all(self.texts[index] in self.pieces for index in word):
            if self.kind == "unigram":
                number = self._keep(word)
                lattice = self._lattice(text)
                if lattice is not None:
                    self._lattices[number] = lattice
                return number
            if all(character in self.pieces for character in text):
                return self._keep(word, self._merged(text, ())[1], (text, ()))
        return self._keep(word)

    def _keep(
        self, ids: Sequence[int], merges: int = 0, made: tuple[str, tuple[int, ...]] = ("", ())
    ) -> int:
        self._ids.extend(ids)
        self._ends.append(len(self._ids))
        self._merges.append(merges)
        self._dropped.append(made)
        return len(self._merges) - 1

    def _drop_merges(self, chosen: NDArray[np.int64], draws: np.random.Generator) -> None:
        """Replaces segmentations by those that lack some of their merges.

        Each merge is dropped with the same chance, so that the number of merges between two
        dropped ones is geometric: one random number leads to the next dropped one.
        """
        rows, place = np.arange(len(chosen)), np.zeros(len(chosen))
        while len(rows):
            made = np.log1p(-draws.random(len(rows))) / math.log1p(-self.dropout)
            place += np.floor(made)
            hit = place < np.array(self._merges)[chosen[rows]]
            rows, place = rows[hit], place[hit]
            pairs = zip(chosen[rows].tolist(), place.astype(np.int64).tolist(), strict=True)
            chosen[rows] = [self._less.get(pair) or self._without(*pair) for pair in pairs]
            place += 1

    def _without(self, number: int, merge: int) -> int:
        """The segmentation ``number`` with one more merge dropped."""
        text, dropped = self._dropped[number]
        ids, merges = self._merged(text, (*dropped, merge))
        self._less[number, merge] = self._keep(ids, merges, (text, (*dropped, merge)))
        return self._less[number, merge]

    def _merged(self, text: str, dropped: tuple[int, ...]) -> tuple[list[int], int]:
        """Merge the pair of the best score until none is left; the ids, and how many merges there
        were, those included that were ``dropped`` (numbers in their order).

        A pair that was dropped comes back only as part of another.
        """
        symbols: list[str] = list(text)
        following = [*range(1, len(symbols)), -1]
        before = [-1, *range(len(symbols) - 1)]
        heap: list[tuple[float, int, int, str]] = []

        def offer(left: int, right: int) -> None:
            if left >= 0 and right >= 0:
                joined = symbols[left] + symbols[right]
                if joined in self.pieces:
                    heapq.heappush(heap, (-self.pieces[joined].score, left, right, joined))

        for left in range(len(symbols) - 1):
            offer(left, left + 1)
        number = -1
        while heap:
            _, left, right, joined = heapq.heappop(heap)
            if not symbols[left] or not symbols[right] or symbols[left] + symbols[right] != joined:
                continue  # one of the two was merged with another
            number += 1
            if number in dropped:
                continue
            symbols[left], symbols[right] = joined, ""
            following[left] = following[right]
            if following[right] >= 0:
                before[following[right]] = left
            offer(before[left], left)
            offer(left, following[left])
        return [self.pieces[symbol].id for symbol in symbols if symbol], number + 1

    def _walk(self, chosen: NDArray[np.int64], draws: random.Random) -> None:
        """Replaces segmentations by others, drawn from their lattices."""
        for row, number in enumerate(chosen.tolist()):
            if number in self._lattices:
                ids = tuple(_walk_back(self._lattices[number], draws))
                if ids not in self._drawn:
                    self._drawn[ids] = self._keep(ids)
                chosen[row] = self._drawn[ids]

    def _lattice(self, text: str) -> _Lattice | None:
        """All segmentations at once: forward sums of ``P(pieces)^alpha``, in logarithms."""
        alpha = 0.02 / self.dropout
        ends: list[list[tuple[int, int]]] = [[]]
        odds: list[list[float]] = [[]]
        forward = [0.0]
        for end in range(1, len(text) + 1):
            found = [
                (begin, self.pieces[text[begin:end]])
                for begin in range(max(0, end - self.longest), end)
                if forward[begin] > -math.inf and text[begin:end] in self.pieces
            ]
            logs = [forward[begin] + alpha * piece.score for begin, piece in found]
            highest = max(logs, default=-math.inf)
            shares = [math.exp(log - highest) for log in logs]
            forward.append(highest + math.log(sum(shares)) if shares else -math.inf)
            ends.append([(begin, piece.id) for begin, piece in found])
            odds.append(list(accumulate(shares)))
        return _Lattice(ends, odds) if forward[-1] > -math.inf else None


def sampler_of(model: sentencepiece.SentencePieceProcessor, dropout: float) -> SubwordSampler:
    """The sampler of a SentencePiece model; :class:`UsageError` where it is of another kind."""
    special = (model.is_byte, model.is_control, model.is_unknown, model.is_unused)
    texts = [model.id_to_piece(index) for index in range(model.get_piece_size())]
    pieces = {
        text: Piece(index, model.get_score(index))
        for index, text in enumerate(texts)
        if not any(is_special(index) for is_special in special)
    }
    return SubwordSampler(_kind(model), pieces, texts, dropout=dropout)


def _kind(model: sentencepiece.SentencePieceProcessor) -> Literal["bpe", "unigram"]:
    try:
        model.encode("a", enable_sampling=True, nbest_size=-1, alpha=0.1)
    except RuntimeError:
        raise UsageError(
            "subword dropout: this tokenizer is neither BPE nor unigram; set the dropout to 0"
        ) from None
    try:
        model.nbest_encode_as_ids("a", nbest_size=1)
    except RuntimeError:  # only a unigram model has n best segmentations
        return "bpe"
    return "unigram"


def _walk_back(lattice: _Lattice, draws: random.Random) -> list[int]:
    """A segmentation from the end to the beginning, each piece by its odds."""
    place, found = len(lattice.ends) - 1, []
    while place > 0:
        odds = lattice.odds[place]
        choice = bisect(odds, draws.random() * odds[-1], hi=len(odds) - 1)
        place, index = lattice.ends[place][choice]
        found.append(index)
    return found[::-1]
