"""Weights in safetensors files, and in a model.

A file's names, shapes and number types stand in its header. They are compared with the model's
before any number is read: a foreign file costs no memory.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from glassformer.errors import InputError
from glassformer.files import check_regular, flush, open_atomically

__all__ = [
    "check_header",
    "fill_weights",
    "load_tensors",
    "load_weights",
    "save_tensors",
    "weights",
]


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Each parameter once, by its name: tied ones under the first of their names."""
    return {name: weight.detach().contiguous() for name, weight in model.named_parameters()}


def check_header(path: Path, model: nn.Module) -> None:
    """Compare the header of a file with a model's parameters, which may be on the meta device.

    Raises InputError for another name or shape.
    """
    try:
        check_regular(path)
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            shapes = {name: file.get_slice(name).get_shape() for name in names}
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: cannot be read as safetensors ({error})") from error
    _check_shapes(model, shapes, path)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, floating-point numbers all; InputError names a fault."""
    try:
        check_regular(path)
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: cannot be read as safetensors ({error})") from error
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise InputError(
                f"{path}: {name} is of {tensor.dtype}, expected floating-point numbers"
            )
    return tensors


def load_weights(model: nn.Module, stored: Mapping[str, Tensor], origin: Path) -> None:
    """Copy ``stored`` into the model's parameters; names and shapes must be the same."""
    _check_shapes(model, {name: weight.shape for name, weight in stored.items()}, origin)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(stored[name])


def fill_weights(model: nn.Module, path: Path) -> None:
    """Give a model on the meta device the weights of a file that :func:`check_header` has passed.

    Raises InputError for a weight that is not a finite number.
    """
    stored = load_tensors(path)
    kind = torch.get_default_dtype()
    # Copied: tensors of the file lie in its mapping, and are not aligned as torch aligns its own.
    filled = {name: stored.pop(name).to(kind, copy=True) for name in list(stored)}
    for name, weight in filled.items():
        if not torch.isfinite(weight).all():
            raise InputError(
                f"{path}: {name} holds NaN or infinity: the file is damaged: copy it anew"
            )
    model.load_state_dict(filled, strict=False, assign=True)  # tied weights stand there once


def save_tensors(
    tensors: dict[str, Tensor], path: Path, *, metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file at once, with the rights that any new file has.

    ``safetensors.save`` would hold the weights twice more. ``save_file`` replaces the open file by
    one of its own that only its owner can read, and does not flush it.
    """
    with open_atomically(path) as file:
        rights = os.fstat(file.fileno()).st_mode & 0o777
        save_file(tensors, file.name, metadata=metadata)
        Path(file.name).chmod(rights)
        flush(Path(file.name))


def _check_shapes(model: nn.Module, stored: Mapping[str, Sequence[int]], origin: Path) -> None:
    parameters = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    if missing := parameters.keys() - stored.keys():
        raise InputError(f"{origin}: the weights lack {min(missing)} ({len(missing)} missing)")
    if unknown := stored.keys() - parameters.keys():
        raise InputError(f"{origin}: unknown weights {min(unknown)} ({len(unknown)} unknown)")
    for name, shape in parameters.items():
        if tuple(stored[name]) != shape:
            raise InputError(f"{origin}: {name} has shape {tuple(stored[name])}, expected {shape}")
