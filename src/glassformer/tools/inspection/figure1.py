"""The paper's figure 1 as records of every box of a model, with shapes and parameters.

The trace, the page, the picture and the status of the lessons all show these boxes.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from torch import nn

from glassformer.model.transformer import Transformer
from glassformer.support.displays import Shown, Table
from glassformer.tools.inspection.trace.schema import Box, Stack

__all__ = ["Boxes", "figure1"]

# Title and section of a box by the box's name; the first match counts.
_TITLES = (
    (r"source_embedding", "Input Embedding", "3.4"),
    (r"target_embedding", "Output Embedding", "3.4"),
    (r".*_positions", "Positional Encoding", "3.5"),
    (r"encoder.*self_attention", "Multi-Head Attention", "3.2.2"),
    (r"decoder.*self_attention", "Masked Multi-Head Attention", "3.2.3"),
    (r".*cross_attention", "Multi-Head Attention", "3.2.3"),
    (r".*feed_forward", "Feed Forward", "3.3"),
    (r"\w+\.norm", "Norm", "3.1"),
    (r".*\.norm", "Add & Norm", "3.1"),
    (r"output", "Linear", "3.4"),
    (r"softmax", "Softmax", "3.4"),
)
_ATTENTIONS = ("Multi-Head Attention", "Masked Multi-Head Attention")
# The names of the boxes in which a part of the package runs; the first match counts.
_BOXES_OF = (
    (r"model\.embeddings\.", r".*_embedding|output"),
    (r"model\.transformer\.Transformer\.project", r"output"),
    (r"model\.positions\.", r".*_positions"),
    (r"model\.attention\.|model\.masks\.padding_mask", r".*_attention"),
    (r"model\.masks\.", r"decoder.*self_attention"),
    (r"model\.blocks\.FeedForward", r".*feed_forward"),
    (r"model\.blocks\.", r".*norm"),
)


class Boxes(Shown, list[Box]):
    """The boxes of a model, which show themselves as its summary."""

    def records(self) -> Table:
        """One row for equal boxes of all layers, with their parameters, and a row of the sum."""
        rows: dict[str, dict[str, Any]] = {}
        for box in self:
            name = re.sub(r"\.\d+\.", ".", box.name)
            shapes = {"output": box.output_shape, "inside": box.inner_shape}
            row = rows.setdefault(name, {"box": box.title, **shapes, "layers": 0, "parameters": 0})
            row["layers"] += 1
            row["parameters"] += box.parameters
        total = sum(box.parameters for box in self)
        return Table([*rows.values(), {"box": "all", "parameters": total}])


def figure1(
    model: Transformer, src_len: int, tgt_len: int, *, parts: Mapping[str, str] | None = None
) -> Boxes:
    """The boxes in the order of the data, with shapes for one sentence, without the batch.

    The ``parameters`` of all boxes sum up to the model's parameters. ``parts`` maps a place in the
    package, such as ``model.masks.padding_mask``, to the part's owner: "yours", "mistake …", or "".

    >>> from glassformer.config import ModelConfig
    >>> model = Transformer(ModelConfig(source_vocab_size=11, target_vocab_size=11, d_model=8,
    ...     num_heads=2, d_ff=16, num_encoder_layers=1, num_decoder_layers=1))
    >>> boxes = figure1(model, 5, 3)
    >>> [box.title for box in boxes][:3]
    ['Input Embedding', 'Positional Encoding', 'Multi-Head Attention']
    >>> sum(box.parameters for box in boxes) == sum(w.numel() for w in model.parameters())
    True
    """
    boxes = Boxes()
    for name, stack, layer in _names(model):
        length = src_len if stack == "encoder" else tgt_len
        stream, words = [length, model.config.d_model], [length, model.config.target_vocab_size]
        keys = src_len if name.endswith("cross_attention") else length
        read = {"Input Embedding": [length], "Output Embedding": [length], "Softmax": words}
        weights, hidden = [model.config.num_heads, length, keys], [length, model.config.d_ff]
        inner = {"Feed Forward": hidden} | dict.fromkeys(_ATTENTIONS, weights)
        title, section = next(row[1:] for row in _TITLES if re.fullmatch(row[0], name))
        box = Box(
            name=name,
            title=title,
            stack=stack,
            layer=layer,
            section=section,
            input_shape=read.get(title, stream),
            output_shape=words if stack == "output" else stream,
            inner_shape=inner.get(title),
            parameters=_parameters(model, name),
            shared_with=_shared_with(model, name),
            own=_owner(name, parts or {}),
        )
        boxes.append(box)
    return boxes


def _owner(box: str, parts: Mapping[str, str]) -> str | None:
    """The owner of the parts that run in a box; mistakes hide all other owners.

    A box with the owners "yours" and "" is "partly yours".
    """
    owners = {
        whose
        for place, whose in parts.items()
        for boxes in [next((boxes for of, boxes in _BOXES_OF if re.match(of, place)), "$^")]
        if re.fullmatch(boxes, box)
    }
    if mistakes := sorted(owners - {"yours", ""}):
        return ", ".join(mistakes)
    return None if "yours" not in owners else "partly yours" if "" in owners else "yours"


def _names(model: Transformer) -> Iterator[tuple[str, Literal[Stack, "output"], int | None]]:
    """The name, the stack and the layer of each box; a pre-norm stack ends in a LayerNorm."""
    stacks: tuple[tuple[Stack, str], ...] = (("encoder", "source"), ("decoder", "target"))
    for stack, side in stacks:
        yield f"{side}_embedding", stack, None
        yield f"{side}_positions", stack, None
        for layer, block in enumerate(getattr(model, stack).blocks):
            for kind, _ in block.named_children():
                yield f"{stack}.blocks.{layer}.{kind}", stack, layer
                yield f"{stack}.blocks.{layer}.{kind}.norm", stack, layer
        if model.config.norm == "pre":
            yield f"{stack}.norm", stack, None
    yield "output", "output", None
    yield "softmax", "output", None


def _parameters(model: Transformer, name: str) -> int:
    """The number of parameters in a box that no earlier box has."""
    if name == "softmax" or (name == "target_embedding" and _shared_with(model, name)):
        return 0
    if name == "output":
        weights = (model.output_bias, *(model.output.parameters() if model.output else ()))
        return sum(weight.numel() for weight in weights if weight is not None)
    module: Any = model.get_submodule(name)
    counted: nn.Module = getattr(module, "sublayer", module)  # a block's LayerNorm has its own box
    return sum(weight.numel() for weight in counted.parameters())


def _shared_with(model: Transformer, name: str) -> str | None:
    """The box whose parameters a box shares, if the embeddings are tied."""
    joint = model.target_embedding is model.source_embedding
    if name == "target_embedding":
        return "source_embedding" if joint else None
    if name == "output" and model.output is None:
        return "source_embedding" if joint else "target_embedding"
    return None
