"""Word alignment: links from each word of a translation to words of its source.

The decoder's cross-attention shows where each target position reads. This module merges subwords to
words, and links a target word to the source words with most attention. The best layer, heads and
row differ from model to model (:func:`~glassformer.alignment.heads.find_heads`). The row "output"
belongs to the step that produces the word. The row "input" belongs to the next step, which reads
the word (Shift-Att, Chen et al. 2020, arXiv 2004.14837, section 3).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from glassformer.alignment.cross_attention import UnalignedError, cross_weights
from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.batches import grouped_by_size, pad_rows
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Link, Span, subword_spans, words
from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError, counted
from glassformer.support.reading import told
from glassformer.text_engine import SegmentTranslation, Translation

__all__ = [
    "Heads",
    "Row",
    "WordAttention",
    "align",
    "check_lengths",
    "linked",
    "with_alignment",
    "word_attention",
]

_LOG = logging.getLogger(__name__)

Row = Literal["output", "input"]


_AT_ONCE = 4096  # subwords in a batch of sources and targets, with padding
# A target word has a link to a source word with at least a fifth of its attention, and with at
# least half of the greatest attention. A fifth and a half make the fewest errors on Multi30k's
# validation pairs.
_ALSO, _LEAST = 0.5, 0.2


@dataclass(frozen=True)
class Heads:
    """The heads that align words: indices of one layer and of its heads, and the row.

    ``error`` is the heads' alignment error rate, 0 to 1, on the pairs that ``judge`` names.
    """

    layer: int
    heads: tuple[int, ...]
    row: Row
    error: float | None = None
    judge: str = ""

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None, config: ModelConfig) -> "Heads":
        """The heads that a bundle stores, or else all heads of the last layer but one.

        By the output row, the last layer but one aligns best in Garg et al. 2019 (arXiv 1909.02074,
        section 4.1). A model of one or two layers takes its last layer.

        A layer or head that the model does not have raises InputError.
        """
        layers, heads = config.num_decoder_layers, config.num_heads
        if stored is None:
            layer = layers - 2 if layers > 2 else layers - 1
            return cls(layer, tuple(range(heads)), "output")
        try:
            chosen = cls(**{**stored, "heads": tuple(stored["heads"])})
            known = chosen.row in get_args(Row) and chosen.layer in range(layers)
            known = known and bool(chosen.heads) and {*chosen.heads} <= {*range(heads)}
        except (TypeError, KeyError):
            known = False
        if not known:
            raise InputError(
                f"the bundle's alignment is {dict(stored)}: expected a layer below {layers}, heads"
                f" below {heads}, and the row output or input; find the heads with find_heads"
            )
        return chosen

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "heads": list(self.heads)}


@dataclass(frozen=True)
class WordAttention:
    """Attention from target words to source words; the end symbol has the rest up to 1."""

    source: list[Span]
    target: list[Span]
    weights: Float[np.ndarray, "*maps target_words source_words"]


def align(
    bundle: Bundle,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    heads: Heads | None = None,
) -> list[tuple[Link, ...]]:
    """The links of each source's words to its target's, in the order of the target.

    Each target word has a link to the source word with most attention. It also has a link to each
    source word with at least half as much attention. A word with evenly spread attention has no
    link. The model reads the target by teacher forcing, up to the layer of ``heads``. None means
    the bundle's heads.

    A text that is longer than the model's positions raises InputError. A model that lacks
    cross-attention in a decoder block raises UnalignedError.
    """
    heads = heads or Heads.of(bundle.alignment, bundle.model.config)
    maps = word_attention(bundle, sources, targets, layers=(heads.layer,), rows=(heads.row,))
    return [_links(each, each.weights[0, 0, list(heads.heads)].mean(axis=0)) for each in maps]


def _links(
    attention: WordAttention, weights: Float[np.ndarray, "target_words source_words"]
) -> tuple[Link, ...]:
    return tuple(
        Link(attention.source[read], attention.target[word], round(float(weights[word, read]), 4))
        for word, read in np.argwhere(linked(weights))
    )


def with_alignment(bundle: Bundle, translations: Sequence[Translation]) -> list[Translation]:
    """The translations and their alternatives, with alignments.

    The function aligns each segment with its translation. A link has places in the text as typed
    and in the whole translation. If the model cannot align, the translations have no alignment, and
    the log gets a line.
    """
    parts = [
        part
        for best in translations
        for translation in (best, *best.alternatives)
        for part in translation.segments
        if part.alignment is None
    ]
    sources, targets = [part.segment.text for part in parts], [part.text for part in parts]
    try:
        links = iter(align(bundle, sources, targets))
    except UnalignedError as error:
        _LOG.warning("no word alignment: %s", error)
        return list(translations)

    def aligned(translation: Translation) -> Translation:
        alignment = tuple(
            placed
            for part in translation.segments
            for placed in _placed(part, next(links) if part.alignment is None else part.alignment)
        )
        alternatives = tuple(map(aligned, translation.alternatives))
        return replace(translation, alignment=alignment, alternatives=alternatives)

    return [aligned(translation) for translation in translations]


def _placed(part: SegmentTranslation, links: Sequence[Link]) -> Iterator[Link]:
    """The links of a segment, as character offsets in the whole source and translation."""
    first = part.span[0]
    # The size of each character in the translation; a capital may be longer, such as SS for ß.
    sizes = [len(letter.upper()) if part.segment.capitals else 1 for letter in part.text]
    targets = [first, *(first + size for size in accumulate(sizes))]
    for link in links:
        source, target = link.source, link.target
        yield Link(
            (part.segment.places[source[0]], part.segment.places[source[1]]),
            (targets[target[0]], targets[target[1]]),
            link.weight,
        )


def linked(
    weights: Float[np.ndarray, "*maps target_words source_words"],
) -> NDArray[np.bool_]:
    """True for each source word to which a target word has a link.

    >>> linked(np.array([[0.1, 0.8, 0.0], [0.4, 0.3, 0.1], [0.1, 0.1, 0.1]])).astype(int).tolist()
    [[0, 1, 0], [1, 1, 0], [0, 0, 0]]
    """
    most = weights.max(axis=-1, keepdims=True, initial=0.0)
    return np.asarray((weights >= _ALSO * most) & (weights >= _LEAST))


def word_attention(
    bundle: Bundle,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    layers: Sequence[int],
    rows: Sequence[Row] = get_args(Row),
) -> list[WordAttention]:
    """The weights of each pair, with axes (rows, layers, heads, target words, source words)."""
    if len(sources) != len(targets):
        counts = counted(len(sources), "source"), counted(len(targets), "target")
        raise ValueError(f"{' and '.join(counts)} must be pairs")
    pairs = [
        (_Text.of(bundle.source_tokenizer, source), _Text.of(bundle.target_tokenizer, target))
        for source, target in zip(sources, targets, strict=True)
    ]
    sizes = [(len(source.ids) + 1, len(target.ids) + 1) for source, target in pairs]
    check_lengths(sizes, bundle.model.config)
    attention: dict[int, WordAttention] = {}
    for places in grouped_by_size(list(map(sum, sizes)), _AT_ONCE):
        group = [pairs[place] for place in places]
        with told(sources[places[0]]):
            of_group = list(_weights(bundle.model, group, layers))
        for place, weights in zip(places, of_group, strict=True):
            source, target = pairs[place]
            produced, reading = weights[:, :, :-1], weights[:, :, 1:]
            maps = np.stack([produced if row == "output" else reading for row in rows])
            merged = _merged(maps[..., : len(source.ids)], source.shares, target.shares)
            attention[place] = WordAttention(source.words, target.words, merged)
    return [attention[place] for place in range(len(pairs))]


def check_lengths(sizes: Iterable[tuple[int, int]], config: ModelConfig) -> None:
    """Raise InputError for a pair with more subwords on a side than positions.

    ``sizes`` holds the number of subwords of each source and target, with the end symbols.
    """
    rooms = config.max_length_of_source, config.max_length
    for number, pair in enumerate(sizes, start=1):
        for size, room in zip(pair, rooms, strict=True):
            if size > room:
                raise InputError(
                    f"pair {number} has {size:,} subwords on a side, and this model has positions"
                    f" for {room:,}: shorten it"
                )


def _merged(
    weights: Float[np.ndarray, "*maps target_pieces source_pieces"],
    source: Float[np.ndarray, "source_words source_pieces"],
    target: Float[np.ndarray, "target_words target_pieces"],
) -> Float[np.ndarray, "*maps target_words source_words"]:
    """The attention of words: the mean over target pieces, the sum over source pieces.

    ``source`` and ``target`` are the :func:`_shares` of the source text and the target text.
    """
    mean = target / np.maximum(target.sum(axis=1, keepdims=True), 1e-9)
    return np.asarray(mean @ (weights @ source.T))


def _shares(words: Sequence[Span], pieces: Sequence[Span]) -> Float[np.ndarray, "words pieces"]:
    """The share of each subword in each word: 1, or less if the subword touches several words.

    >>> _shares([(0, 3), (4, 7)], [(0, 2), (2, 3), (3, 7), (7, 7)]).tolist()
    [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    """
    owner = {place: word for word, span in enumerate(words) for place in range(*span)}
    shares = np.zeros((len(words), len(pieces)), dtype=np.float32)
    for piece, span in enumerate(pieces):
        touched = [owner[place] for place in range(*span) if place in owner]
        for word in touched:
            shares[word, piece] += 1 / len(touched)
    return shares


@dataclass(frozen=True)
class _Text:
    """A text's subwords and words, and the share of each subword in each word."""

    ids: list[int]
    words: list[Span]
    shares: Float[np.ndarray, "words pieces"]

    @classmethod
    def of(cls, tokenizer: Tokenizer, text: str) -> "_Text":
        ids, spans = tokenizer.encode(text), words(text)
        return cls(ids, spans, _shares(spans, subword_spans(tokenizer, ids, text)))


def _weights(
    model: Transformer, pairs: Sequence[tuple[_Text, _Text]], layers: Sequence[int]
) -> Iterator[Float[np.ndarray, "layers heads tgt_len src_len"]]:
    """The attention maps of each pair; row 0 is for the start symbol, a later row for a subword."""
    config, device = model.config, model.output_weight.device
    sources = [[*source.ids, config.eos_id] for source, _ in pairs]
    targets = [[config.bos_id, *target.ids] for _, target in pairs]
    source_ids = pad_rows(sources, config.pad_of_source).to(device)
    target_ids = pad_rows(targets, config.pad_id).to(device)
    maps = torch.stack(cross_weights(model, source_ids, target_ids, layers), dim=1)
    padded = maps.float().cpu().numpy()
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        yield padded[row, :, :, : len(target), : len(source)]
