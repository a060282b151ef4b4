"""Random segmentations of words, the same for the same seed on any machine and in any process.

SentencePiece can sample as well, but mixes a number of the process into its seed (0.2.3 does):
a run that is continued would draw other segmentations than one that never stopped. So they are
drawn here, with Python's own generator. Words are taken one by one, as their pieces end at
spaces; a word that a special piece (a byte, say) is part of keeps its usual pieces.

Sources: Provilkov et al. 2020, section 3 (BPE-dropout); Kudo 2018, section 3.3 (unigram).
"""

import heapq
import math
import random
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

import sentencepiece

from glassformer.errors import UsageError

__all__ = ["Piece", "SubwordSampler", "sampler_of"]

_SPACE = "\u2581"  # what SentencePiece writes for a space


@dataclass(frozen=True)
class Piece:
    """A subword: its id, and its score: of the log-probability (unigram) or the merge's rank."""

    id: int
    score: float


@dataclass(frozen=True)
class _Merges:
    """A word for BPE-dropout: its characters, and the chance that every merge of it is made."""

    characters: list[str]
    all_made: float


@dataclass(frozen=True)
class _Lattice:
    """A word for unigram sampling: for each end, the pieces that end there and their odds."""

    ends: list[list[tuple[int, int]]]  # begin and id
    odds: list[list[float]]  # cumulated


class SubwordSampler:
    """Draws segmentations of words with the pieces of a BPE or a unigram model.

    ``words`` are given as the ids of their usual segmentation, ``texts`` says what each id spells,
    and ``pieces`` are those that may be drawn.

    >>> pieces = {"a": Piece(0, -9.0), "b": Piece(1, -9.0), "ab": Piece(2, 0.0)}
    >>> sampler = SubwordSampler("bpe", pieces, ["a", "b", "ab"], dropout=0.5)
    >>> draws = random.Random(1)
    >>> sorted({tuple(sampler.draw((2,), draws)) for _ in range(20)})
    [(0, 1), (2,)]
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
        self._starts = {index for index, text in enumerate(texts) if text.startswith(_SPACE)}
        self._known: dict[tuple[int, ...], _Merges | _Lattice | None] = {}

    def sample(self, lines: Iterable[Sequence[int]], *, seed: int) -> list[list[int]]:
        """Each line of usual ids, with the segmentation of each of its words drawn."""
        draws = random.Random(seed)
        return [
            [index for word in self._words(ids) for index in self.draw(word, draws)]
            for ids in lines
        ]

    def draw(self, word: tuple[int, ...], draws: random.Random) -> Sequence[int]:
        """One segmentation of a word."""
        if word not in self._known:
            self._known[word] = self._study("".join(self.texts[index] for index in word), word)
        known = self._known[word]
        if isinstance(known, _Merges):
            # Most words lose no merge; where one does, which is lost first follows from the same
            # number: P(the first j are made) = (1 - dropout)^j.
            chance = 1.0 - draws.random()
            if chance <= known.all_made:
                return word
            first = math.ceil(math.log(chance) / math.log1p(-self.dropout))
            return self._merged(known.characters, first, draws)
        if isinstance(known, _Lattice):
            return _walk_back(known, draws)
        return word

    def _words(self, ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The pieces of a line, cut where a word begins."""
        starts = [place for place, index in enumerate(ids) if index in self._starts]
        bounds = [0, *(place for place in starts if place), len(ids)]
        return (tuple(ids[begin:end]) for begin, end in pairwise(bounds))

    def _study(self, text: str, word: Iterable[int]) -> _Merges | _Lattice | None:
        """What drawing needs to know of a word; None where it has but one segmentation."""
        if len(text) < 2 or not all(self.texts[index] in self.pieces for index in word):
            return None
        if self.kind == "unigram":
            return self._lattice(text)
        if not all(character in self.pieces for character in text):
            return None
        made = len(text) - len(self._merged(list(text), 0, None))
        return _Merges(list(text), (1.0 - self.dropout) ** made)

    def _merged(self, characters: list[str], first: int, draws: random.Random | None) -> list[int]:
        """Merge the pair of the best score until none is left.

        The merge number ``first`` is dropped, and each later one with the chance of the dropout; a
        pair that was dropped comes back only as part of another. Without ``draws`` none is.
        """
        symbols: list[str] = list(characters)
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
        number = 0
        while heap:
            _, left, right, joined = heapq.heappop(heap)
            if not symbols[left] or not symbols[right] or symbols[left] + symbols[right] != joined:
                continue  # one of the two was merged with another
            number += 1
            if draws and (number == first or (number > first and draws.random() < self.dropout)):
                continue
            symbols[left], symbols[right] = joined, ""
            following[left] = following[right]
            if following[right] >= 0:
                before[following[right]] = left
            offer(before[left], left)
            offer(left, following[left])
        return [self.pieces[symbol].id for symbol in symbols if symbol]

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
