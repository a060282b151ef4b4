"""Which layer, heads and row align words best: found on pairs, stored in the bundle.

They are judged by the alignment error rate (Och and Ney 2003, section 6), against true links where
there are some. Where there are none, against *anchors*: word pairs that IBM model 1 (Brown et al.
1993), estimated on these very pairs in both directions, finds whichever way it is asked. That is
a second opinion which knows no order and no model; it is right mostly, not always, and it is
silent about words that it is not sure of. Chen et al. 2020 (section 3.3) choose the layer by the
agreement of two translators of opposite directions, which one bundle has not.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from glassformer.data.token_store import Sentences
from glassformer.data.words import Span, TrueLinks, words
from glassformer.errors import InputError
from glassformer.files import write_atomically
from glassformer.inspection.alignment.align import Heads, Row, WordAttention, linked, word_attention
from glassformer.inspection.attention_of import TranslatorParts
from glassformer.training.ibm_model1 import translation_table

__all__ = ["Candidate", "Found", "anchors", "error_rate", "find_heads", "store_heads"]

_Maps: TypeAlias = NDArray[np.float32]

_ROWS: tuple[Row, ...] = ("output", "input")
_MOST = 300  # pairs that heads are judged on


class Candidate(NamedTuple):
    """One head, or all heads of a layer (``head`` None), and its error rate."""

    row: Row
    layer: int
    head: int | None
    error: float


@dataclass(frozen=True)
class Found:
    """The best heads, and what each head alone is worth."""

    heads: Heads
    table: tuple[Candidate, ...]


def find_heads(
    parts: TranslatorParts,
    pairs: Sequence[tuple[str, str]],
    truth: Sequence[TrueLinks] | None = None,
) -> Found:
    """The heads of one layer, and the row, whose mean attention aligns ``pairs`` best.

    The best head comes first, and then whichever other of its layer lowers the error rate of their
    mean most, as long as one does. Up to 300 pairs are judged. ``truth`` is their true links;
    without, their anchors are, and of more pairs the anchors are better.

    Errors: InputError where there is nothing to judge by.
    """
    judge = "true links" if truth is not None else "anchors of IBM model 1"
    known = anchors(pairs) if truth is None else truth
    useful = [place for place, links in enumerate(known) if links.possible][:_MOST]
    if not useful:
        raise InputError(f"{len(pairs)} pairs: no {judge} to choose heads by; give more pairs")
    sources, targets = ([pairs[place][side] for place in useful] for side in (0, 1))
    layers = range(parts.model.config.num_decoder_layers)
    attention = word_attention(parts, sources, targets, layers=layers, rows=_ROWS)
    judged = _Judged(attention, [known[place] for place in useful])
    alone, together = judged.errors(), judged.errors(lambda maps: maps.mean(axis=2))
    row, layer, head = (int(n) for n in np.unravel_index(alone.argmin(), alone.shape))
    heads, error = judged.joined(row, layer, head)
    table = [
        Candidate(_ROWS[row], layer, None if head == alone.shape[2] else head, float(error))
        for (row, layer, head), error in np.ndenumerate(
            np.concatenate((alone, together[..., None]), axis=2)
        )
    ]
    where = f"{judge}, {len(useful)} pairs"
    return Found(Heads(layer, tuple(heads), _ROWS[row], round(error, 4), where), tuple(table))


def error_rate(found: Sequence[set[tuple[Span, Span]]], truth: Sequence[TrueLinks]) -> float:
    r"""The alignment error rate :math:`1 - (|A \cap S| + |A \cap P|) / (|A| + |S|)`, 0 to 1.

    Links of words that stand in no true link are left out: nobody knows.

    >>> of = TrueLinks(frozenset({((0, 1), (0, 1))}), frozenset({((0, 1), (0, 1))}))
    >>> error_rate([{((0, 1), (0, 1)), ((5, 6), (0, 1))}], [of])
    0.0
    """
    right = total = 0
    for links, true in zip(found, truth, strict=True):
        sides = [{pair[side] for pair in true.possible} for side in (0, 1)]
        asked = {link for link in links if link[0] in sides[0] and link[1] in sides[1]}
        right += len(asked & true.sure) + len(asked & true.possible)
        total += len(asked) + len(true.sure)
    return 1 - right / total if total else 0.0


def store_heads(directory: Path, heads: Heads) -> None:
    """Write them into the bundle's config.json; earlier versions of the program pass over them."""
    path = directory / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{directory}: not a bundle ({error})") from error
    config["alignment"] = heads.as_dict()
    write_atomically(path, (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode())


class _Judged:
    """The attention of some pairs with their true links, as matrices of target by source words."""

    def __init__(self, attention: Sequence[WordAttention], truth: Sequence[TrueLinks]) -> None:
        self.attention = [one.weights for one in attention]
        self.sure, self.possible, self.asked = [], [], []
        for one, true in zip(attention, truth, strict=True):
            sure, possible = (_matrix(one, links) for links in (true.sure, true.possible))
            self.sure.append(sure)
            self.possible.append(possible)
            self.asked.append(possible.any(1, keepdims=True) & possible.any(0, keepdims=True))

    def errors(self, pick: Callable[[_Maps], _Maps] = lambda maps: maps) -> NDArray[np.float64]:
        """:func:`error_rate` of each of the maps that ``pick`` makes of a pair's."""
        right, total = np.zeros(()), np.zeros(())
        for maps, sure, possible, asked in zip(
            self.attention, self.sure, self.possible, self.asked, strict=True
        ):
            links = linked(pick(maps)) & asked
            right = right + (links & sure).sum((-2, -1)) + (links & possible).sum((-2, -1))
            total = total + links.sum((-2, -1)) + sure.sum()
        return np.asarray(1 - right / np.maximum(total, 1))

    def joined(self, row: int, layer: int, head: int) -> tuple[list[int], float]:
        """The head, and those of its layer that lower the error of their mean, the best first."""
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


def _matrix(one: WordAttention, links: frozenset[tuple[Span, Span]]) -> NDArray[np.bool_]:
    found = np.zeros((len(one.target), len(one.source)), dtype=np.bool_)
    for source, target in links:
        found[one.target.index(target), one.source.index(source)] = True
    return found


def anchors(pairs: Sequence[tuple[str, str]]) -> list[TrueLinks]:
    """Word pairs that IBM model 1 of ``pairs`` finds in both directions, as links to judge by.

    Words that their sentence repeats are left out, for the model cannot tell which is which.
    """
    sides = [[_spelt(pair[side]) for pair in pairs] for side in (0, 1)]
    ids = [_numbered(side) for side in sides]
    ways = [_likeliest(ids[0], ids[1]), _likeliest(ids[1], ids[0])]
    found = []
    for place, (source, target) in enumerate(pairs):
        there, back = ways[0][place], ways[1][place]
        spans = words(source), words(target)
        once = [Counter(side[place]) for side in sides]
        links = frozenset(
            (spans[0][i], spans[1][j])
            for j, i in enumerate(there)
            if back[i] == j and once[0][sides[0][place][i]] == once[1][sides[1][place][j]] == 1
        )
        found.append(TrueLinks(links, links))
    return found


def _spelt(text: str) -> list[str]:
    return [text[slice(*span)].lower() for span in words(text)]


def _numbered(sentences: Sequence[list[str]]) -> Sentences:
    numbers: dict[str, int] = {}
    ids = [numbers.setdefault(word, len(numbers)) for words in sentences for word in words]
    offsets = np.cumsum([0, *map(len, sentences)])
    return Sentences(np.array(ids, dtype=np.int64), offsets)


def _likeliest(source: Sentences, target: Sentences) -> list[list[int]]:
    """For each word of each target, the place of the source word that it most likely is."""
    size = int(target.ids.max(initial=0)) + 1
    e, f, probability = translation_table(source, target, target_vocab_size=size)
    table = dict(zip((e * size + f).tolist(), probability.tolist(), strict=True))

    def likeliest(read: list[int], word: int) -> int:
        chances = [table[one * size + word] for one in read]
        return chances.index(max(chances))

    return [
        [likeliest(read, word) for word in said] if read else []
        for read, said in (
            (source[row].tolist(), target[row].tolist()) for row in range(len(source))
        )
    ]
