"""The paper's figure 1 as records: every box of a model with its shapes and parameters."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from torch import nn

from glassformer.inspection.trace.schema import Box
from glassformer.model.transformer import Transformer

__all__ = ["figure1"]

_NO_PARTS: Mapping[str, str] = MappingProxyType({})
_TITLES = {
    "encoder.self_attention": ("Multi-Head Attention", "3.2.2"),
    "decoder.self_attention": ("Masked Multi-Head Attention", "3.2.3"),
    "decoder.cross_attention": ("Multi-Head Attention", "3.2.3"),
    "encoder.feed_forward": ("Feed Forward", "3.3"),
    "decoder.feed_forward": ("Feed Forward", "3.3"),
}


# The boxes that a part of the package runs in, by their names; the first match counts.
_BOXES_OF = (
    (r"model\.embeddings\.", r".*_embedding|output"),
    (r"model\.transformer\.Transformer\.project", r"output"),
    (r"model\.positions\.", r".*_positions"),
    (r"model\.attention\.|model\.masks\.padding_mask", r".*_attention"),
    (r"model\.masks\.", r"decoder.*self_attention"),
    (r"model\.blocks\.FeedForward", r".*feed_forward"),
    (r"model\.blocks\.", r".*norm"),
)


def figure1(
    model: Transformer, src_len: int, tgt_len: int, *, parts: Mapping[str, str] = _NO_PARTS
) -> list[Box]:
    """The boxes in the order of the data, for a sentence of these lengths, without the batch.

    The ``parameters`` of all boxes sum up to the model's. ``parts`` says whose part is in a place
    of the package, such as ``model.masks.padding_mask``: "yours", or "mistake …".

    >>> from glassformer.config import ModelConfig
    >>> model = Transformer(ModelConfig(source_vocab_size=11, target_vocab_size=11, d_model=8,
    ...     num_heads=2, d_ff=16, num_encoder_layers=1, num_decoder_layers=1))
    >>> boxes = figure1(model, 5, 3)
    >>> [box.title for box in boxes][:3]
    ['Input Embedding', 'Positional Encoding', 'Multi-Head Attention']
    >>> sum(box.parameters for box in boxes) == sum(w.numel() for w in model.parameters())
    True
    """
    figure = _Figure(model, src_len, tgt_len)
    boxes = [
        *figure.bottom("encoder"),
        *figure.blocks("encoder"),
        *figure.bottom("decoder"),
        *figure.blocks("decoder"),
        *figure.top(),
    ]
    return [replace(box, own=_own(box.name, parts)) for box in boxes] if parts else boxes


def _own(box: str, parts: Mapping[str, str]) -> str | None:
    """Whose parts run in a box; a mistake comes before "yours"."""
    owners = {
        owner
        for place, owner in parts.items()
        for pattern in [next((boxes for of, boxes in _BOXES_OF if re.match(of, place)), "$^")]
        if re.fullmatch(pattern, box)
    }
    mistakes = sorted(owners - {"yours"})
    return ", ".join(mistakes) or ("yours" if owners else None)


@dataclass(frozen=True)
class _Figure:
    model: Transformer
    src_len: int
    tgt_len: int

    def bottom(self, stack: Literal["encoder", "decoder"]) -> Iterator[Box]:
        """Embedding and positions of one side."""
        model, config = self.model, self.model.config
        length = self._length(stack)
        stream = [length, config.d_model]
        side, title = ("source", "Input") if stack == "encoder" else ("target", "Output")
        embedding, positions = f"{side}_embedding", f"{side}_positions"
        shared = stack == "decoder" and model.target_embedding is model.source_embedding
        yield Box(
            name=embedding,
            title=f"{title} Embedding",
            stack=stack,
            layer=None,
            section="3.4",
            input_shape=[length],
            output_shape=stream,
            inner_shape=None,
            parameters=0 if shared else _count(getattr(model, embedding)),
            shared_with="source_embedding" if shared else None,
        )
        count = _count(getattr(model, positions))
        yield self._stream(positions, "Positional Encoding", stack, "3.5", parameters=count)

    def blocks(self, stack: Literal["encoder", "decoder"]) -> Iterator[Box]:
        """Each sublayer and its Add & Norm; in a pre-norm model also the last norm."""
        blocks: Any = getattr(self.model, stack).blocks
        for layer, block in enumerate(blocks):
            for kind, residual in block.named_children():
                name = f"{stack}.blocks.{layer}.{kind}"
                title, section = _TITLES[f"{stack}.{kind}"]
                count, inner = _count(residual.sublayer), self._inner(stack, kind)
                yield self._stream(
                    name, title, stack, section, parameters=count, layer=layer, inner=inner
                )
                norm = _count(residual.norm)
                title = "Add & Norm"
                yield self._stream(
                    f"{name}.norm", title, stack, "3.1", parameters=norm, layer=layer
                )
        last = _count(getattr(self.model, stack).norm)
        if last:
            yield self._stream(f"{stack}.norm", "Norm", stack, "3.1", parameters=last)

    def top(self) -> Iterator[Box]:
        """The output projection and the softmax."""
        model, config = self.model, self.model.config
        words = [self.tgt_len, config.target_vocab_size]
        weights = 0 if model.output is None else _count(model.output)
        bias = 0 if model.output_bias is None else model.output_bias.numel()
        tied = None
        if model.output is None:
            same = model.target_embedding is model.source_embedding
            tied = "source_embedding" if same else "target_embedding"
        shape = [self.tgt_len, config.d_model]
        yield Box(
            "output", "Linear", "output", None, "3.4", shape, words, None, weights + bias, tied
        )
        yield Box("softmax", "Softmax", "output", None, "3.4", words, words, None, 0, None)

    def _stream(
        self,
        name: str,
        title: str,
        stack: Literal["encoder", "decoder"],
        section: str,
        *,
        parameters: int,
        layer: int | None = None,
        inner: list[int] | None = None,
    ) -> Box:
        """A box whose input and output have the same shape."""
        shape = [self._length(stack), self.model.config.d_model]
        return Box(name, title, stack, layer, section, shape, shape, inner, parameters, None)

    def _inner(self, stack: str, kind: str) -> list[int]:
        length, config = self._length(stack), self.model.config
        if kind == "feed_forward":
            return [length, config.d_ff]
        keys = self.src_len if kind == "cross_attention" else length
        return [config.num_heads, length, keys]

    def _length(self, stack: str) -> int:
        return self.src_len if stack == "encoder" else self.tgt_len


def _count(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())
