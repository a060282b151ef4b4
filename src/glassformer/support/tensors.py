"""Weights in a model, and into safetensors files; :mod:`.strangers` reads these."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from glassformer.support.errors import InputError
from glassformer.support.files import flush, open_atomically

__all__ = ["load_weights", "save_tensors", "shapes_of", "weights"]


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Each parameter once, by its name: tied ones under the first of their names."""
    return {name: weight.detach().contiguous() for name, weight in model.named_parameters()}


def shapes_of(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter, by its name."""
    return {name: tuple(weight.shape) for name, weight in model.named_parameters()}


def load_weights(model: nn.Module, stored: Mapping[str, Tensor], origin: Path) -> None:
    """Fill the model's parameters; on the meta device they become those of ``stored`` themselves.

    Raises InputError if one is missing. Their names and shapes must be the model's.
    """
    if missing := shapes_of(model).keys() - stored.keys():
        raise InputError(f"{origin}: the weights lack {min(missing)} ({len(missing)} missing)")
    empty = any(weight.is_meta for weight in model.parameters())
    model.load_state_dict(stored, strict=False, assign=empty)  # tied weights stand there once


def save_tensors(
    tensors: dict[str, Tensor], path: Path, *, metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file at once, with the rights that any new file has.

    ``safetensors.save`` would hold the weights twice more. ``save_file`` replaces the open file by
    one of its own that only its owner can read, and does not flush it. Errors: ``OSError``.
    """
    with open_atomically(path) as file:
        rights = os.fstat(file.fileno()).st_mode & 0o777
        try:
            save_file(tensors, file.name, metadata=metadata)
        except SafetensorError as error:  # its own error for a full disk
            raise OSError(errno.EIO, f"cannot be written ({error})") from error
        Path(file.name).chmod(rights)
        flush(Path(file.name))
