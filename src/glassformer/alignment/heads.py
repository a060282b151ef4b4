"""Chooses the layer, heads and row that align words best on given pairs.

The judge is the alignment error rate (Och and Ney 2003, section 6) against true links. Without
true links it is the error rate against *anchors*: word pairs that IBM model 1 (Brown et al. 1993)
finds in both directions, estimated on these pairs. Anchors are mostly right and know neither word
order nor the model; rare and ambiguous words have none. Chen et al. 2020 (section 3.3) choose the
layer by the agreement of two translators of opposite directions; a bundle has one direction.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from glassformer.alignment.align import Heads, Row, WordAttention, linked, word_attention
from glassformer.alignment.ibm_model1 import translation_table
from glassformer.bundle import TranslatorParts
from glassformer.data.token_store import Sentences
from glassformer.data.words import Span, TrueLinks, words
from glassformer.errors import InputError

__all__ = ["BestHeads", "HeadError", "anchors", "error_rate", "find_heads"]

_Maps: TypeAlias = NDArray[np.float32]

_ROWS: tuple[Row, ...] = ("output", "input")
_MOST_PAIRS = 300


class HeadError(NamedTuple):
    """The error rate of one head, or of the mean of a layer's heads (``head`` None)."""

    row: Row
    layer: int
    head: int | None
    error: float


@dataclass(frozen=True)
class BestHeads:
    """The best heads, and the error rate of each head alone."""

    heads: Heads
    table: tuple[HeadError, ...]


def find_heads(
    parts: TranslatorParts,
    pairs: Sequence[tuple[str, str]],
    truth: Sequence[TrueLinks] | None = None,
) -> BestHeads:
    """The heads of one layer, and the row, whose mean attention aligns ``pairs`` best.

    It starts with the best head and adds heads of the same layer. Each time it adds the head that
    lowers the error rate of the mean most. At most 300 pairs are judged, by the true links
    ``truth`` or by anchors; more pairs make better anchors.

    Errors: InputError if no pair has a true link or an anchor.
    """
    judge = "true links" if truth is not None else "anchors of IBM model 1"
    truth = anchors(pairs) if truth is None else truth
    useful = [place for place, links in enumerate(truth) if links.possible][:_MOST_PAIRS]
    if not useful:
        raise InputError(f"{len(pairs)} pairs: no {judge} to choose heads by; give more pairs")
    sources, targets = ([pairs[place][side] for place in useful] for side in (0, 1))
    layers = range(parts.model.config.num_decoder_layers)
    attention = word_attention(parts, sources, targets, layers=layers, rows=_ROWS)
    judged = _Judged(attention, [truth[place] for place in useful])
    alone, together = judged.errors(), judged.errors(lambda maps: maps.mean(axis=2))
    row, layer, head = (int(n) for n in np.unravel_index(alone.argmin(), alone.shape))
    heads, error = judged.joined(row, layer, head)
    table = [
        HeadError(_ROWS[row], layer, None if head == alone.shape[2] else head, float(error))
        for (row, layer, head), error in np.ndenumerate(
            np.concatenate((alone, together[..., None]), axis=2)
        )
    ]
    judge = f"{judge}, {len(useful)} pairs"
    return BestHeads(Heads(layer, tuple(heads), _ROWS[row], round(error, 4), judge), tuple(table))


def error_rate(links: Sequence[set[tuple[Span, Span]]], truth: Sequence[TrueLinks]) -> float:
    r"""The alignment error rate :math:`1 - (|A \cap S| + |A \cap P|) / (|A| + |S|)`, 0 to 1.

    Words without a true link are not judged.

    >>> of = TrueLinks(frozenset({((0, 1), (0, 1))}), frozenset({((0, 1), (0, 1))}))
    >>> error_rate([{((0, 1), (0, 1)), ((5, 6), (0, 1))}], [of])
    0.0
    """
    right = total = 0
    for pairs, true in zip(links, truth, strict=True):
        sides = [{pair[side] for pair in true.possible} for side in (0, 1)]
        judged = {pair for pair in pairs if pair[0] in sides[0] and pair[1] in sides[1]}
        right += len(judged & true.sure) + len(judged & true.possible)
        total += len(judged) + len(true.sure)
    return 1 - right / total if total else 0.0


class _Judged:
    """The attention and true links of some pairs, as matrices of target by source words."""

    def __init__(self, attention: Sequence[WordAttention], truth: Sequence[TrueLinks]) -> None:
        self.attention = [pair.weights for pair in attention]
        self.sure, self.possible, self.known = [], [], []
        for pair, true in zip(attention, truth, strict=True):
            sure, possible = (_matrix(pair, links) for links in (true.sure, true.possible))
            self.sure.append(sure)
            self.possible.append(possible)
            self.known.append(possible.any(1, keepdims=True) & possible.any(0, keepdims=True))

    def errors(self, pick: Callable[[_Maps], _Maps] = lambda maps: maps) -> NDArray[np.float64]:
        """:func:`error_rate` of each map that ``pick`` returns for a pair's maps."""
        right, total = np.zeros(()), np.zeros(())
        for maps, sure, possible, known in zip(
            self.attention, self.sure, self.possible, self.known, strict=True
        ):
            links = linked(pick(maps)) & known
            right = right + (links & sure).sum((-2, -1)) + (links & possible).sum((-2, -1))
            total = total + links.sum((-2, -1)) + sure.sum()
        return np.asarray(1 - right / np.maximum(total, 1))

    def joined(self, row: int, layer: int, head: int) -> tuple[list[int], float]:
        """The head, the heads of its layer that lower the error of their mean, and that error."""
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


def _matrix(words: WordAttention, links: frozenset[tuple[Span, Span]]) -> NDArray[np.bool_]:
    matrix = np.zeros((len(words.target), len(words.source)), dtype=np.bool_)
    for source, target in links:
        matrix[words.target.index(target), words.source.index(source)] = True
    return matrix


def anchors(pairs: Sequence[tuple[str, str]]) -> list[TrueLinks]:
    """Word pairs that IBM model 1 of ``pairs`` finds in both directions, as true links.

    A word that its sentence repeats has no anchor: the model cannot tell the two apart.
    """
    sides = [[_lower_words(pair[side]) for pair in pairs] for side in (0, 1)]
    ids = [_numbered(side) for side in sides]
    directions = [_likeliest(ids[0], ids[1]), _likeliest(ids[1], ids[0])]
    truth = []
    for place, (source, target) in enumerate(pairs):
        there, back = directions[0][place], directions[1][place]
        spans = words(source), words(target)
        counts = [Counter(side[place]) for side in sides]
        links = frozenset(
            (spans[0][i], spans[1][j])
            for j, i in enumerate(there)
            if back[i] == j and counts[0][sides[0][place][i]] == counts[1][sides[1][place][j]] == 1
        )
        truth.append(TrueLinks(links, links))
    return truth


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
