"""Weights out of safetensors files, one tensor after another, into our model."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from glassformer.errors import InputError
from glassformer.interchange.hugging_face.configuration import read_json
from glassformer.interchange.imported import NEVER
from glassformer.model.transformer import Transformer

__all__ = ["read_weights"]

_WHOLE, _INDEX, _PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
_WITH_START = {"source_embedding.weight", "target_embedding.weight", "output.weight", "output_bias"}


def read_weights(
    model: Transformer, directory: Path, table: Mapping[str, str | None], *, start: int
) -> None:
    """Fill the model's parameters from the files of ``directory``.

    ``start``: the id of their start symbol, whose row becomes that of ours.

    Raises InputError for a weight that ``table`` lacks, that the files lack, of another shape, or
    that stands there twice with different values.
    """
    parameters = dict(model.named_parameters())
    filled: dict[str, str] = {}
    with torch.no_grad():
        for path, name, tensor in _tensors(directory):
            if name not in table:
                raise InputError(f"{path}: unknown weight {name}: this program has no place for it")
            ours = table[name]
            if ours is None:
                continue
            place = parameters[ours]
            rows = place[:-1] if ours in _WITH_START else place
            values = tensor[0] if ours == "output_bias" and tensor.dim() == 2 else tensor
            if not values.is_floating_point() or values.shape != rows.shape:
                raise InputError(
                    f"{path}: {name} is {values.dtype} of shape {tuple(values.shape)}, expected"
                    f" floating-point numbers of shape {tuple(rows.shape)}"
                )
            if ours not in filled:
                rows.copy_(values)
                filled[ours] = name
            elif not torch.equal(rows, values.to(rows.dtype)):
                raise InputError(
                    f"{path}: {name} and {filled[ours]} differ, and config.json says that they are"
                    " one weight"
                )
        _add_start(parameters, start)
    theirs = {ours: name for name, ours in reversed([*table.items()]) if ours is not None}
    missing = parameters.keys() - filled.keys() - {"output_bias"}
    if missing:
        first = min(theirs[name] for name in missing)
        raise InputError(f"{directory}: the weights lack {first} ({len(missing)} missing)")


def _add_start(parameters: Mapping[str, Tensor], start: int) -> None:
    """The last row of each vocabulary's table: our start symbol."""
    for name in _WITH_START & parameters.keys():
        table = parameters[name]
        if name == "output_bias":
            table[-1] = NEVER
        else:  # a source never holds the symbol, and its vocabulary may be smaller
            table[-1] = table[min(start, len(table) - 2)]


def _tensors(directory: Path) -> Iterator[tuple[Path, str, Tensor]]:
    """File, name and values of each tensor, read when it is asked for."""
    for path in _files(directory):
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118  a safetensors file is no dict
                    yield path, name, file.get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"{path}: not safetensors, or cut short ({error}): copy it anew"
            ) from error


def _files(directory: Path) -> list[Path]:
    if (directory / _WHOLE).is_file():
        return [directory / _WHOLE]
    if (directory / _INDEX).is_file():
        names = read_json(directory / _INDEX).get("weight_map", {}).values()
        return [directory / Path(name).name for name in sorted(set(names))]
    if (directory / _PICKLED).is_file():
        raise InputError(
            f"{directory / _PICKLED}: a pickle, which can run code, so it is not read; write"
            " safetensors with transformers: AutoModelForSeq2SeqLM.from_pretrained(DIRECTORY)"
            ".save_pretrained(DIRECTORY)"
        )
    raise InputError(f"{directory}: it holds no {_WHOLE}")
