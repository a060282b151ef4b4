"""The weights of a model, and files of weights; :mod:`.strangers` reads such files."""

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from glassformer.support.errors import InputError
from glassformer.support.files import flush, open_atomically

__all__ = ["load_weights", "save_tensors", "shapes_of", "unfilled", "weights"]

M = TypeVar("M", bound=nn.Module)


def unfilled(build: Callable[[], M]) -> M:
    """The module that ``build`` makes, on the meta device: names and shapes, without memory.

    If ``build`` fails on the meta device, or computes a buffer, the module gets memory.
    """
    with suppress(Exception), torch.device("meta"):
        module = build()
        if not any(buffer.is_meta for buffer in module.buffers()):
            return module
    with torch.random.fork_rng(devices=[]):
        return build()


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Each parameter once, by its name; a tied parameter has the first of its names.

    The result also holds numbers that a module learns in a buffer, such as a moving mean.
    """
    learnt = {name: x for name, x in _buffers(model).items() if torch.isfinite(x).all()}
    stored = dict(model.named_parameters()) | learnt
    return {name: weight.detach().contiguous() for name, weight in stored.items()}


def shapes_of(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter and of each buffer of :func:`weights`, by its name."""
    stored = dict(model.named_parameters()) | _buffers(model)
    return {name: tuple(weight.shape) for name, weight in stored.items()}


def _buffers(model: nn.Module) -> dict[str, Tensor]:
    """The persistent buffers of floating-point numbers; the package's own modules have none."""
    kept = model.state_dict(keep_vars=True).keys()
    buffers = model.named_buffers()
    return {name: x for name, x in buffers if name in kept and x.is_floating_point()}


def load_weights(model: nn.Module, stored: Iterable[tuple[str, Tensor]], origin: Path) -> None:
    """Fill the model's parameters; ``stored`` replaces parameters on the meta device.

    A missing tensor raises InputError. ``stored`` must have the model's names and shapes.
    """
    places: dict[str, Tensor] = dict(model.named_parameters())
    missing, empty = set(places), any(weight.is_meta for weight in places.values())
    if empty:
        stored = list(stored)
        model.load_state_dict(dict(stored), strict=False, assign=True)  # tied weights are in once
    places |= _buffers(model)
    for name, tensor in stored:
        missing.discard(name)
        if not empty:
            places[name].detach().copy_(tensor)
    if missing:
        raise InputError(f"{origin}: the weights lack {min(missing)} ({len(missing)} missing)")


def save_tensors(
    tensors: dict[str, Tensor], path: Path, *, metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file at once, with the permissions of any new file.

    ``safetensors.save`` would hold the weights twice more. ``save_file`` replaces the open file by
    a new file, which only its owner can read, and does not flush it. A full disk is an ``OSError``.
    """
    with open_atomically(path) as file:
        rights = os.fstat(file.fileno()).st_mode & 0o777
        try:
            save_file(tensors, file.name, metadata=metadata)
        except SafetensorError as error:  # safetensors' error for a full disk
            raise OSError(errno.EIO, f"cannot be written ({error})") from error
        Path(file.name).chmod(rights)
        flush(Path(file.name))
