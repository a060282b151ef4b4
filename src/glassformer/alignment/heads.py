"""Chooses the layer, heads and row that align words best on given pairs.

The best heads have the lowest alignment error rate (Och and Ney 2003, section 6) against *anchors*.
Anchors are word pairs that IBM model 1 (Brown et al. 1993), estimated on the given pairs, finds in
both directions. Anchors are mostly right and know neither word order nor the model. Rare and
ambiguous words have no anchors. Chen et al. 2020 (section 3.3) choose the layer by the agreement of
two translators of opposite directions; a bundle has one direction.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from glassformer.alignment.align import Heads, Row, WordAttention, linked, word_attention
from glassformer.alignment.ibm_model1 import translation_table
from glassformer.bundle import Bundle
from glassformer.data.token_store import Sentences
from glassformer.data.words import Span, words
from glassformer.support.errors import InputError, counted

__all__ = ["NoAnchorsError", "anchors", "find_heads"]

_Maps: TypeAlias = NDArray[np.float32]
_Links: TypeAlias = frozenset[tuple[Span, Span]]  # of source and target words

_ROWS: tuple[Row, ...] = get_args(Row)
_MOST_PAIRS = 300


class NoAnchorsError(InputError):
    """No pair has an anchor, so that no error rate can choose heads."""


def find_heads(bundle: Bundle, pairs: Sequence[tuple[str, str]]) -> Heads:
    """The heads of one layer, and the row, whose mean attention aligns ``pairs`` best.

    The function starts with the best head. Step by step it adds the head of the best head's layer
    that lowers the mean's error rate most. At most 300 pairs give the error rate; more pairs make
    better anchors.

    Pairs without anchors raise NoAnchorsError; a model that cannot align raises UnalignedError.
    """
    anchored = anchors(pairs)
    useful = [place for place, links in enumerate(anchored) if links][:_MOST_PAIRS]
    judge = "anchors of IBM model 1"
    if not useful:
        raise NoAnchorsError(
            f"no {judge} to judge heads in {counted(len(pairs), 'pair')}: give more pairs"
        )
    sources, targets = ([pairs[place][side] for place in useful] for side in (0, 1))
    layers = range(bundle.model.config.num_decoder_layers)
    attention = word_attention(bundle, sources, targets, layers=layers, rows=_ROWS)
    judged = _Judged(attention, [anchored[place] for place in useful])
    errors = judged.errors()
    row, layer, head = (int(n) for n in np.unravel_index(errors.argmin(), errors.shape))
    heads, error = judged.joined(row, layer, head)
    judge = f"{judge}, {counted(len(useful), 'pair')}"
    return Heads(layer, tuple(heads), _ROWS[row], round(error, 4), judge)


class _Judged:
    """The attention and anchors of some pairs, as matrices of target by source words."""

    def __init__(self, attention: Sequence[WordAttention], anchors: Sequence[_Links]) -> None:
        self.attention = [pair.weights for pair in attention]
        self.anchors = list(map(_matrix, attention, anchors))

    def errors(self, pick: Callable[[_Maps], _Maps] = lambda maps: maps) -> NDArray[np.float64]:
        """The error rate of each map that ``pick`` returns for a pair's maps.

        The error rate leaves out words without an anchor.
        """
        right, total = np.zeros(()), np.zeros(())
        for maps, anchors in zip(self.attention, self.anchors, strict=True):
            known = anchors.any(1, keepdims=True) & anchors.any(0, keepdims=True)
            links = linked(pick(maps)) & known
            right = right + 2 * (links & anchors).sum((-2, -1))
            total = total + links.sum((-2, -1)) + anchors.sum()
        return np.asarray(1 - right / np.maximum(total, 1))

    def joined(self, row: int, layer: int, head: int) -> tuple[list[int], float]:
        """The head, with heads of its layer that lower the mean's error, and the lowest error."""
        chosen, lowest = [head], float(self.errors(lambda maps: maps[row, layer, head]))
        others = [h for h in range(self.attention[0].shape[2]) if h != head]
        while others:
            sets = [[*chosen, other] for other in others]
            errors = self.errors(partial(_means, row=row, layer=layer, sets=sets))
            if errors.min() >= lowest:
                break
            chosen, lowest = sets[int(errors.argmin())], float(errors.min())
            others.remove(chosen[-1])
        return sorted(chosen), lowest


def _means(maps: _Maps, row: int, layer: int, sets: Sequence[Sequence[int]]) -> _Maps:
    return np.asarray(maps[row, layer][np.array(sets)].mean(axis=1))


def _matrix(words: WordAttention, links: _Links) -> NDArray[np.bool_]:
    matrix = np.zeros((len(words.target), len(words.source)), dtype=np.bool_)
    for source, target in links:
        matrix[words.target.index(target), words.source.index(source)] = True
    return matrix


def anchors(pairs: Sequence[tuple[str, str]]) -> list[_Links]:
    """The word pairs of each pair that IBM model 1 of ``pairs`` finds in both directions.

    A word that its sentence repeats has no anchor, as IBM model 1 knows no word order.
    """
    sides = [[_lower_words(pair[side]) for pair in pairs] for side in (0, 1)]
    ids = [_numbered(side) for side in sides]
    directions = [_likeliest(ids[0], ids[1]), _likeliest(ids[1], ids[0])]
    anchored = []
    for place, (source, target) in enumerate(pairs):
        there, back = directions[0][place], directions[1][place]
        spans = words(source), words(target)
        counts = [Counter(side[place]) for side in sides]
        links = frozenset(
            (spans[0][i], spans[1][j])
            for j, i in enumerate(there)
            if back[i] == j and counts[0][sides[0][place][i]] == counts[1][sides[1][place][j]] == 1
        )
        anchored.append(links)
    return anchored


def _lower_words(text: str) -> list[str]:
    return [text[slice(*span)].lower() for span in words(text)]


def _numbered(sentences: Sequence[list[str]]) -> Sentences:
    numbers: dict[str, int] = {}
    ids = [numbers.setdefault(word, len(numbers)) for words in sentences for word in words]
    offsets = np.cumsum([0, *map(len, sentences)])
    return Sentences(np.array(ids, dtype=np.int64), offsets)


def _likeliest(source: Sentences, target: Sentences) -> list[list[int]]:
    """For each word of each target, the place of its likeliest source word."""
    size = int(target.ids.max(initial=0)) + 1
    e, f, probability = translation_table(source, target, target_vocab_size=size)
    table = dict(zip((e * size + f).tolist(), probability.tolist(), strict=True))

    def likeliest(words: list[int], target_word: int) -> int:
        chances = [table[word * size + target_word] for word in words]
        return chances.index(max(chances))

    pairs = [(source[row].tolist(), target[row].tolist()) for row in range(len(source))]
    return [
        [likeliest(words, target_word) for target_word in targets] if words else []
        for words, targets in pairs
    ]
