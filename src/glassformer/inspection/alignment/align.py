"""Word alignment: which source word each word of a translation was made from.

The decoder's cross-attention says where each target position reads; subwords are merged to words,
and a word is linked to what it reads most. Which layer and heads say it best differs from model
to model (:func:`~glassformer.inspection.alignment.heads.find_heads`). So does the row: that of the
step which produces a word ("output"), or of the step which reads it, one later ("input";
Shift-Att, Chen et al. 2020, arXiv 2004.14837, section 3: the decoder knows then which word it is).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Link, Span, piece_spans, words
from glassformer.errors import InputError
from glassformer.inspection.attention_of import TranslatorParts
from glassformer.model import masks
from glassformer.model.transformer import Transformer
from glassformer.text_engine import Translation

__all__ = [
    "BundleParts",
    "Heads",
    "Row",
    "WordAttention",
    "align",
    "cross_weights",
    "linked",
    "with_alignment",
    "word_attention",
]

Row = Literal["output", "input"]


@runtime_checkable
class BundleParts(TranslatorParts, Protocol):
    """A model and its tokenizers with their bundle: a ``Translator`` is one."""

    @property
    def bundle(self) -> Bundle: ...


_AT_ONCE = 4096  # subwords of sources and targets, with padding
# A word is linked to what it reads at least half as much as what it reads most, and with a fifth
# of its attention: on Multi30k's validation pairs the fewest errors of a grid of both.
_ALSO, _LEAST = 0.5, 0.2


@dataclass(frozen=True)
class Heads:
    """Whose attention words are aligned by: heads of one layer, counted from 0, and the row.

    ``error`` (0 to 1) is what they got wrong where they were found, ``judge`` what that was.
    """

    layer: int
    heads: tuple[int, ...]
    row: Row
    error: float | None = None
    judge: str = ""

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None, config: ModelConfig) -> "Heads":
        """As a bundle stores them; where it stores none, all heads of the last layer but one.

        The last but one, by the output row, is what aligned best in Garg et al. 2019 (arXiv
        1909.02074, section 4.1); a model of one or two layers has its last.

        Errors: InputError for what this model has not.
        """
        layers, heads = config.num_decoder_layers, config.num_heads
        if stored is None:
            layer = layers - 2 if layers > 2 else layers - 1
            return cls(layer, tuple(range(heads)), "output")
        try:
            found = cls(**{**stored, "heads": tuple(stored["heads"])})
            known = found.row in ("output", "input") and found.layer in range(layers)
            known = known and bool(found.heads) and {*found.heads} <= {*range(heads)}
        except (TypeError, KeyError):
            known = False
        if not known:
            raise InputError(
                f"the bundle's alignment {dict(stored)}: expected a layer below {layers}, heads"
                f" below {heads}, and the row output or input; find them again with find_heads"
            )
        return found

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "heads": list(self.heads)}


@dataclass(frozen=True)
class WordAttention:
    """How much each target word reads each source word; what is missing to 1 went to the end."""

    source: list[Span]
    target: list[Span]
    weights: Float[np.ndarray, "*maps target_words source_words"]


def align(
    translator: BundleParts,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    heads: Heads | None = None,
) -> list[tuple[Link, ...]]:
    """The links of each source's words to its target's, in the order of the target.

    Each target word is linked to the source word that it reads most, and to those that it reads
    half as much or more; to none where it reads nothing in particular. The target is read by
    teacher forcing, up to the layer of ``heads``: the bundle's own where none are given.

    Errors: InputError for a text that is longer than the model's positions.
    """
    heads = heads or Heads.of(translator.bundle.alignment, translator.model.config)
    rows = (heads.row,)
    found: list[tuple[Link, ...]] = []
    for one in word_attention(translator, sources, targets, layers=(heads.layer,), rows=rows):
        mean = one.weights[0, 0, list(heads.heads)].mean(axis=0)
        found.append(
            tuple(
                Link(one.source[place], one.target[word], round(float(mean[word, place]), 4))
                for word, place in np.argwhere(linked(mean))
            )
        )
    return found


def with_alignment(
    translator: BundleParts,
    texts: Sequence[str],
    translations: Sequence[Translation],
    *,
    longest: int,
) -> list[Translation]:
    """The translations of ``texts`` and their alternatives with their alignments.

    A text of more than ``longest`` subwords was translated in pieces, and goes without.
    """
    lengths = map(len, translator.source_tokenizer.encode_batch(texts))
    whole = [length <= longest for length in lengths]
    pairs = [
        (text, said.text)
        for text, one, short in zip(texts, translations, whole, strict=True)
        for said in (one, *one.alternatives)
        if short
    ]
    links = iter(align(translator, [one for one, _ in pairs], [other for _, other in pairs]))

    def complete(one: Translation) -> Translation:
        own = next(links)
        return replace(one, alignment=own, alternatives=tuple(map(complete, one.alternatives)))

    return [complete(one) if short else one for one, short in zip(translations, whole, strict=True)]


def linked(
    weights: Float[np.ndarray, "*maps target_words source_words"],
) -> NDArray[np.bool_]:
    """Which of the source words each target word is linked to: those that it reads enough.

    >>> linked(np.array([[0.1, 0.8, 0.0], [0.4, 0.3, 0.1], [0.1, 0.1, 0.1]])).astype(int).tolist()
    [[0, 1, 0], [1, 1, 0], [0, 0, 0]]
    """
    most = weights.max(axis=-1, keepdims=True, initial=0.0)
    return np.asarray((weights >= _ALSO * most) & (weights >= _LEAST))


def word_attention(
    parts: TranslatorParts,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    layers: Sequence[int],
    rows: Sequence[Row] = ("output", "input"),
) -> list[WordAttention]:
    """For each pair, weights of (rows, layers, heads, target words, source words)."""
    if len(sources) != len(targets):
        raise ValueError(f"{len(sources)} sources and {len(targets)} targets must be pairs")
    read = [_Text(parts.source_tokenizer, text) for text in sources]
    said = [_Text(parts.target_tokenizer, text) for text in targets]
    _check_lengths(read, said, parts.model.config.max_length)
    found: dict[int, WordAttention] = {}
    for places in _alike([len(r.ids) + len(s.ids) + 2 for r, s in zip(read, said, strict=True)]):
        pairs = [(read[place], said[place]) for place in places]
        for place, weights in zip(places, _weights(parts.model, pairs, layers), strict=True):
            source, target = read[place], said[place]
            produced, reading = weights[:, :, :-1], weights[:, :, 1:]
            chosen = np.stack([produced if row == "output" else reading for row in rows])
            of_words = target.mean @ (chosen[..., : len(source.ids)] @ source.sum.T)
            found[place] = WordAttention(source.words, target.words, of_words)
    return [found[place] for place in range(len(read))]


@torch.inference_mode()
def cross_weights(
    model: Transformer,
    source: Int[Tensor, "batch src_len"],
    target: Int[Tensor, "batch tgt_len"],
    layers: Sequence[int],
) -> list[Float[Tensor, "batch heads tgt_len src_len"]]:
    """The cross-attention of some layers (rising) where ``target`` is read at once, as in training.

    Layers above are not computed, and the others by the fused kernel.
    """
    memory = model.encode(source)
    mask = masks.target_mask(target, model.config.pad_id)
    maps: list[Tensor] = []
    x = model.target_positions(model.target_embedding(target))
    for number, block in enumerate(model.decoder.blocks[: max(layers) + 1]):
        if number not in layers:
            x = block(x, memory.states, mask, memory.mask)
            continue
        y = block.self_attention.before(x)
        x = block.self_attention.add(x, block.self_attention.sublayer(y, y, y, mask))
        attended, weights = block.cross_attention.sublayer.with_weights(
            block.cross_attention.before(x), memory.states, memory.states, memory.mask
        )
        x = block.feed_forward(block.cross_attention.add(x, attended))
        maps.append(weights)
    return maps


class _Text:
    """A text's subwords and words, and how the first make up the second."""

    def __init__(self, tokenizer: Tokenizer, text: str) -> None:
        self.ids = tokenizer.encode(text)
        self.words = words(text)
        self._spans = piece_spans(tokenizer, self.ids, text)

    @cached_property
    def sum(self) -> Float[np.ndarray, "words pieces"]:
        """Each subword's share in each word: 1, or less where it touches several."""
        owner = {place: word for word, span in enumerate(self.words) for place in range(*span)}
        shares = np.zeros((len(self.words), len(self.ids)), dtype=np.float32)
        for piece, span in enumerate(self._spans):
            touched = [owner[place] for place in range(*span) if place in owner]
            for word in touched:
                shares[word, piece] += 1 / len(touched)
        return shares

    @cached_property
    def mean(self) -> Float[np.ndarray, "words pieces"]:
        return np.asarray(self.sum / np.maximum(self.sum.sum(axis=1, keepdims=True), 1e-9))


def _weights(
    model: Transformer, pairs: Sequence[tuple[_Text, _Text]], layers: Sequence[int]
) -> Iterator[Float[np.ndarray, "layers heads tgt_len src_len"]]:
    """Of each pair, as subwords: a row for the start symbol and one for each target subword."""
    config, device = model.config, model.output_weight.device
    source = [torch.tensor([*read.ids, config.eos_id]) for read, _ in pairs]
    target = [torch.tensor([config.bos_id, *said.ids]) for _, said in pairs]
    batch = [
        nn.utils.rnn.pad_sequence(side, batch_first=True, padding_value=config.pad_id).to(device)
        for side in (source, target)
    ]
    maps = torch.stack(cross_weights(model, batch[0], batch[1], layers), dim=1)
    everything = maps.float().cpu().numpy()
    for row, (one, other) in enumerate(zip(source, target, strict=True)):
        yield everything[row, :, :, : len(other), : len(one)]


def _check_lengths(read: Sequence[_Text], said: Sequence[_Text], room: int) -> None:
    for place, pair in enumerate(zip(read, said, strict=True)):
        length = max(len(text.ids) for text in pair) + 1
        if length > room:
            raise InputError(
                f"pair {place + 1} has {length:,} subwords on a side, and this model has positions"
                f" for {room:,}: cut it"
            )


def _alike(sizes: Sequence[int]) -> Iterator[list[int]]:
    """The places in groups of like sizes, the smallest first, each of a bounded size in all."""
    group: list[int] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if group and sizes[place] * (len(group) + 1) > _AT_ONCE:
            yield group
            group = []
        group.append(place)
    if group:
        yield group
