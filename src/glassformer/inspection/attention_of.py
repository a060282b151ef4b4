"""The attention of a translator for one sentence: text in; weights and words out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError, UsageError, nearest
from glassformer.inspection.capture import capture
from glassformer.model.transformer import Transformer

__all__ = ["Attention", "Part", "TranslatorParts", "attention_of", "token_labels"]

Part = Literal["encoder", "decoder", "cross"]

_WORD = "\u2581"  # SentencePiece writes ▁ where a word begins

_BLOCKS = {
    "encoder": "encoder.blocks.{}.self_attention",
    "decoder": "decoder.blocks.{}.self_attention",
    "cross": "decoder.blocks.{}.cross_attention",
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
