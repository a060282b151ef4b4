"""Attention drawn: who read whom, in a run of a trained model (section 3.2; figures 3 to 5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError, UsageError, nearest
from glassformer.inspection.capture import capture
from glassformer.inspection.plots.figure import (
    INK,
    Axes,
    Figure,
    cell_inches,
    draw_matrix,
    draw_scale,
    label_inches,
    label_tokens,
    new_figure,
)
from glassformer.model.transformer import Transformer

__all__ = [
    "Attention",
    "Part",
    "TranslatorParts",
    "attention_figure",
    "attention_of",
    "plot_attention_grid",
    "plot_attention_head",
    "token_labels",
]

Part = Literal["encoder", "decoder", "cross"]

_WORD = "\u2581"  # SentencePiece writes ▁ where a word begins
_WRITTEN_IN = 14  # tokens up to which the numbers fit the squares

_BLOCKS = {
    "encoder": "encoder.blocks.{}.self_attention",
    "decoder": "decoder.blocks.{}.self_attention",
    "cross": "decoder.blocks.{}.cross_attention",
}
_NAMES = {
    "encoder": "Encoder's self-attention",
    "decoder": "Decoder's self-attention",
    "cross": "Decoder's cross-attention",
}


@runtime_checkable
class TranslatorParts(Protocol):
    """A model and its tokenizers: a ``Bundle`` or a ``Translator`` is one."""

    @property
    def model(self) -> Transformer: ...
    @property
    def source_tokenizer(self) -> Tokenizer: ...
    @property
    def target_tokenizer(self) -> Tokenizer: ...


@dataclass(frozen=True)
class Attention:
    """The weights of one part of a model for one sentence, and the words along both sides."""

    weights: Float[Tensor, "layers heads q_len k_len"]
    query_labels: list[str]
    key_labels: list[str]
    axes_labels: tuple[str, str]


def attention_figure(
    parts: TranslatorParts,
    source_text: str,
    target_text: str,
    *,
    part: Part = "cross",
    layer: int | None = None,
    head: int | Literal["mean"] | None = None,
) -> Figure:
    """The attention of a model that reads ``source_text`` and writes ``target_text``.

    Without ``layer`` and ``head``, all of them, layers by heads. Both count from 0.
    ``head="mean"`` is the mean over the heads, and over the layers too where none is given.

    Raises:
        UsageError: a layer or head that the model does not have, or an unknown part.
        InputError: an empty source, or a sentence longer than the model reads.
    """
    seen = attention_of(parts, source_text, target_text, part=part)
    weights, names = _select(seen.weights, layer, head)
    words = (seen.query_labels, seen.key_labels)
    if weights.shape[:2] == (1, 1):
        title = f"{_NAMES[part]}: {names[0][0]}"
        return plot_attention_head(weights[0, 0], *words, title=title, axes_labels=seen.axes_labels)
    return plot_attention_grid(
        weights, *words, title=_NAMES[part], axes_labels=seen.axes_labels, names=names
    )


def attention_of(
    parts: TranslatorParts, source_text: str, target_text: str, *, part: Part = "cross"
) -> Attention:
    """Run the model once on this pair and keep the weights of one part.

    The queries of ``cross`` bear the token that they predict, as alignments are read; those of
    ``decoder`` the token that they read, as its keys do.
    """
    if part not in _BLOCKS:
        raise UsageError(f"part {part!r}: expected {', '.join(_BLOCKS)}{nearest(part, _BLOCKS)}")
    if not source_text.strip():
        raise InputError("the source sentence is empty: there is no token to attend to")
    model = parts.model
    source = [*_ids(parts.source_tokenizer, source_text, "source", model), model.config.eos_id]
    words = _ids(parts.target_tokenizer, target_text, "target", model)
    read, predicted = [model.config.bos_id, *words], [*words, model.config.eos_id]

    source_labels = token_labels(parts.source_tokenizer, source)
    read_labels = token_labels(parts.target_tokenizer, read)
    if part == "encoder":
        labels, axes = (source_labels, source_labels), ("query (source)", "key (source)")
    elif part == "decoder":
        labels, axes = (read_labels, read_labels), ("query (target)", "key (target)")
    else:
        labels = (token_labels(parts.target_tokenizer, predicted), source_labels)
        axes = ("query (target): the token it predicts", "key (source)")
    return Attention(_weights(model, source, read, _BLOCKS[part]), *labels, axes)


def token_labels(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Subwords to read: words without SentencePiece's mark, ``·`` before what continues one."""
    special = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id}
    labels: list[str] = []
    for index in ids:
        piece = tokenizer.id_to_piece(index)
        if index in special or piece.startswith("<0x"):
            labels.append(piece)
        elif piece.startswith(_WORD):
            labels.append(piece.removeprefix(_WORD) or _WORD)
        else:
            labels.append(f"·{piece}" if labels else piece)
    return labels


def plot_attention_head(
    weights: Float[Tensor, "q_len k_len"],
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    title: str = "Attention",
    axes_labels: tuple[str, str] = ("query", "key"),
) -> Figure:
    """One head: row ``i`` shows how query ``i`` spreads its attention over the keys.

    Short sentences have the weights written in, in hundredths.

    >>> weights = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    >>> figure = plot_attention_head(weights, ["a", "dog"], ["ein", "Hund"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['90', '10', '20', '80']
    """
    _check_labels(weights, query_labels, key_labels)
    cell = cell_inches(max(weights.shape), room=11.0)
    width = cell * weights.size(1) + label_inches(query_labels, cell) + 1.7
    height = cell * weights.size(0) + label_inches(key_labels, cell) + 1.2
    figure = new_figure(max(width, 5.2), max(height, 2.8))
    axes = figure.subplots()
    image = draw_matrix(axes, weights, vmin=0)
    label_tokens(axes, rows=query_labels, columns=key_labels, cell=cell)
    if max(weights.shape) <= _WRITTEN_IN:
        _write_in(axes, weights)
    figure.suptitle(title, fontsize=11)
    axes.set_ylabel(axes_labels[0])
    axes.set_xlabel(axes_labels[1])
    draw_scale(figure, image, axes, label="weight")
    return figure


def plot_attention_grid(
    weights: Float[Tensor, "layers heads q_len k_len"],
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    title: str = "Attention",
    axes_labels: tuple[str, str] = ("query", "key"),
    names: Sequence[Sequence[str]] | None = None,
) -> Figure:
    """Layers by heads, on one scale; ``names`` are the panels' titles.

    >>> weights = torch.rand(2, 3, 4, 5).softmax(dim=-1)
    >>> figure = plot_attention_grid(weights, list("abcd"), list("vwxyz"))
    >>> figure.axes[5].get_title()
    'layer 1, head 2'
    """
    _check_labels(weights, query_labels, key_labels)
    names = names or _names(*weights.shape[:2])
    rows, columns, q_len, k_len = weights.shape
    longest = max(q_len, k_len)
    panel = min(max(0.15 * longest, 1.7), 5.0, 30 / max(rows, columns))
    cell = panel / longest
    figure = new_figure(
        max(5.2, columns * max(cell * k_len + 0.15, 1.3) + label_inches(query_labels, cell) + 1.9),
        rows * (cell * q_len + 0.4) + label_inches(key_labels, cell) + 1.0,
    )
    grid = figure.subplots(rows, columns, squeeze=False)
    largest = weights.max().item()
    for row in range(rows):
        for column in range(columns):
            axes = grid[row, column]
            image = draw_matrix(axes, weights[row, column], vmin=0, vmax=largest)
            axes.set_title(names[row][column], fontsize=9)
            label_tokens(
                axes,
                rows=() if column else query_labels,
                columns=key_labels if row == rows - 1 else (),
                cell=cell,
            )
    figure.suptitle(title, fontsize=12)
    figure.supylabel(axes_labels[0], fontsize=10)
    figure.supxlabel(axes_labels[1], fontsize=10)
    draw_scale(figure, image, grid, label="weight")
    return figure


def _weights(
    model: Transformer, source: list[int], target: list[int], block: str
) -> Float[Tensor, "layers heads q_len k_len"]:
    device = model.output_weight.device
    training = model.training
    model.eval()  # dropout would draw other weights each time
    try:
        with torch.no_grad(), capture(model) as seen:
            model(torch.tensor([source], device=device), torch.tensor([target], device=device))
    finally:
        model.train(training)
    wanted = {block.format(number) for number in range(len(seen))}
    maps = [weights[0] for name, weights in seen.attention_maps() if name in wanted]
    return torch.stack(maps).float().cpu()


def _ids(tokenizer: Tokenizer, text: str, side: str, model: Transformer) -> list[int]:
    ids = tokenizer.encode(text)
    length, longest = len(ids) + 1, model.config.max_length
    if length > longest:
        raise InputError(
            f"the {side} sentence has {length} tokens and the model reads {longest} at most:"
            " shorten it"
        )
    return ids


def _select(
    weights: Tensor, layer: int | None, head: int | Literal["mean"] | None
) -> tuple[Tensor, list[list[str]]]:
    """The wanted layers and heads, ``(layers, heads, …)``, and what each is called."""
    layers, heads = weights.shape[:2]
    _check_number("layer", layer, layers)
    kept_layers = slice(layer, layer + 1) if layer is not None else slice(None)
    if head == "mean":
        name = (
            "mean over all layers and heads" if layer is None else f"layer {layer}, mean of heads"
        )
        return weights[kept_layers].mean(dim=(0, 1), keepdim=True), [[name]]
    _check_number("head", head, heads)
    kept_heads = slice(head, head + 1) if head is not None else slice(None)
    names = [row[kept_heads] for row in _names(layers, heads)[kept_layers]]
    return weights[kept_layers, kept_heads], names


def _names(layers: int, heads: int) -> list[list[str]]:
    return [[f"layer {row}, head {column}" for column in range(heads)] for row in range(layers)]


def _check_number(what: str, number: int | None, count: int) -> None:
    if number is not None and not 0 <= number < count:
        raise UsageError(
            f"{what} {number}: this part of the model has the {what}s 0 to {count - 1}"
        )


def _check_labels(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> None:
    if weights.shape[-2:] != (len(queries), len(keys)):
        raise ValueError(
            f"weights of {weights.size(-2)} queries and {weights.size(-1)} keys, but"
            f" {len(queries)} query labels and {len(keys)} key labels"
        )


def _write_in(axes: Axes, weights: Tensor) -> None:
    for row, values in enumerate(weights.tolist()):
        for column, value in enumerate(values):
            colour = "white" if value > 0.55 * weights.max() else INK
            style: dict[str, Any] = {
                "ha": "center",
                "va": "center",
                "fontsize": 7.5,
                "color": colour,
            }
            axes.text(column, row, f"{100 * value:.0f}", **style)
