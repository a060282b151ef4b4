"""Reads weights from safetensors files into a Transformer, and writes such a file."""

from collections.abc import Mapping
from pathlib import Path

import torch
from pydantic import BaseModel
from torch import Tensor

from glassformer.config import ModelConfig
from glassformer.model.positions import sinusoidal_positions
from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError
from glassformer.support.strangers import read_json, read_tensors
from glassformer.support.tensors import load_weights, save_tensors, shapes_of
from glassformer.tools.interchange.importing import NEVER, with_rows

__all__ = ["in_halves", "read_weights", "their_start", "write_weights"]

_WHOLE, _INDEX, _PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
# The modules that read the stream between the blocks, and the modules that write to it.
_READERS = {"query", "key", "value", "inner"}
_WRITERS = {"output", "outer", "norm"}
_WITH_START = {"source_embedding.weight", "target_embedding.weight", "output.weight", "output_bias"}


class _Index(BaseModel):
    """The file of each weight of a model in several files."""

    weight_map: dict[str, str]


def read_weights(
    model: Transformer, directory: Path, table: Mapping[str, str | None], *, start: int | None
) -> None:
    """Fill the parameters of a model on the meta device from the files of ``directory``.

    ``start`` is the id whose row an added start symbol copies; None adds no symbol.

    Raises InputError for a weight that ``table`` or the files lack, that has another shape, or that
    the files hold twice with different values.
    """
    shapes, filled, names = shapes_of(model), dict[str, Tensor](), dict[str, str]()
    expected = {
        name: None if ours is None else _their_shape(ours, shapes[ours], start)
        for name, ours in table.items()
    }
    for path in _files(directory):
        for name, tensor in read_tensors(path, expected):
            ours = table[name] or ""
            values = tensor[0] if ours == "output_bias" else tensor
            if ours not in filled:
                filled[ours], names[ours] = values, name
            elif not torch.equal(filled[ours], values):
                raise InputError(
                    f"{path}: {name} and {names[ours]} differ: import reads them as one weight"
                )
    if missing := shapes.keys() - filled.keys() - {"output_bias"}:
        theirs = {ours: name for name, ours in reversed([*table.items()]) if ours is not None}
        first = min(theirs[name] for name in missing)
        raise InputError(f"{directory}: the weights lack {first} ({len(missing)} missing)")
    if "output_bias" in shapes and "output_bias" not in filled:
        filled["output_bias"] = torch.zeros(model.config.target_vocab_size - (start is not None))
    if start is not None:
        for name in _WITH_START & filled.keys():
            rows = len(filled[name])  # no source has the symbol, and its vocabulary may be smaller
            filled[name] = with_rows(filled[name], 1, (rows, min(start, rows - 1)))
    load_weights(model, filled.items(), directory)


def _their_shape(ours: str, shape: tuple[int, ...], start: int | None) -> tuple[int, ...]:
    """The shape of a weight in the files of transformers, without an added start symbol."""
    rows, *rest = shape
    without = (rows - (ours in _WITH_START and start is not None), *rest)
    return (1, *without) if ours == "output_bias" else without


def their_start(model: Transformer) -> int | None:
    """The id whose row import has copied for an added start symbol; None if import added none.

    Training changes both rows, so a fine-tuned model keeps the added start symbol.
    """
    config, bias = model.config, model.output_bias
    if bias is None or config.bos_id != config.target_vocab_size - 1 or bias[-1] != NEVER:
        return None
    tables = [model.target_embedding.weight, model.output_weight]
    alike = [(table[:-1] == table[-1]).all(dim=1) for table in tables]
    copied = set((alike[0] & alike[1]).nonzero().flatten().tolist())
    likely = [index for index in (config.pad_id, config.eos_id) if index in copied]
    return next(iter([*likely, *sorted(copied)]), None)


def write_weights(
    model: Transformer,
    path: Path,
    table: Mapping[str, str | None],
    *,
    dtype: torch.dtype,
    sinusoids: bool = False,
) -> None:
    """Write the model's parameters under transformers' names, the inverse of :func:`read_weights`.

    The file lacks the row that import has added. A missing bias of the logits becomes zeros. With
    ``sinusoids``, the file has the table of positions too.
    """
    parameters = {name: weight.detach() for name, weight in model.named_parameters()}
    if "output_bias" not in parameters:
        parameters["output_bias"] = torch.zeros(model.config.target_vocab_size)
    added = their_start(model) is not None
    written: dict[str, Tensor] = {}
    done: set[str] = set()
    for theirs, ours in table.items():
        if ours is None or (ours in done and model.config.tying != "embeddings"):
            continue
        weight = in_halves(ours, parameters[ours], model.config)
        weight = weight[:-1] if added and ours in _WITH_START else weight
        weight = weight[None] if ours == "output_bias" else weight
        copy = ours in done  # safetensors refuses one tensor with two names
        written[theirs] = weight.to("cpu", dtype, copy=copy).contiguous()
        done.add(ours)
    if sinusoids:
        rows = sinusoidal_positions(model.config.max_length, model.config.d_model, layout="halves")
        names = [name for name in table if name.endswith("embed_positions.weight")]
        written |= {name: rows.to(dtype, copy=True) for name in names}
    save_tensors(written, path, metadata={"format": "pt"})


def in_halves(name: str, weight: Tensor, config: ModelConfig) -> Tensor:
    """A parameter of the equivalent model whose positions have all sines first.

    A permutation of the stream between the blocks turns alternating sines and cosines into two
    halves. LayerNorm sums over the stream in any order. So the logits stay if the permutation
    covers every weight that reads or writes the stream. Heads and inner widths keep their order.

    >>> config = ModelConfig(source_vocab_size=9, target_vocab_size=9, d_model=4, num_heads=1)
    >>> in_halves("encoder.norm.bias", torch.arange(4), config).tolist()
    [0, 2, 1, 3]
    """
    if config.positions == "learned" or config.position_layout == "halves":
        return weight
    axis = _stream_axis(name)
    if axis is None:
        return weight
    order = torch.arange(config.d_model).view(-1, 2).T.flatten()
    return weight.index_select(axis, order.to(weight.device))


def _stream_axis(name: str) -> int | None:
    """The axis of a parameter along the stream between the blocks; None without such an axis."""
    *_, module, kind = ("", *name.split("."))
    if name == "output.weight" or module.endswith("embedding"):
        return 1  # rows begin the stream (embedding), or read the stream (output)
    if module in _READERS:
        return 1 if kind == "weight" else None
    return 0 if module in _WRITERS else None


def _files(directory: Path) -> list[Path]:
    """The files of the weights; an index names files beside it."""
    if (directory / _WHOLE).exists():
        return [directory / _WHOLE]
    if (directory / _INDEX).exists():
        names = read_json(directory / _INDEX, _Index).weight_map.values()
        return [directory / Path(name).name for name in sorted(set(names))]
    if (directory / _PICKLED).exists():
        raise InputError(
            f"{directory / _PICKLED} is a pickle, which can run code: write safetensors with"
            " transformers: AutoModelForSeq2SeqLM.from_pretrained(DIRECTORY)"
            ".save_pretrained(DIRECTORY)"
        )
    raise InputError(f"{directory} holds no {_WHOLE}: copy the whole directory anew")
