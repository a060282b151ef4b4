"""A model of Marian: arrays in a zip file, and its options as YAML in one of them."""

import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from torch import Tensor

from glassformer.archive import DAMAGED, check_size, opened_members
from glassformer.errors import InputError

__all__ = ["MarianFile", "read_marian_file"]

_OPTIONS = "special:model.yml"
_NUMBERS = {"float16", "float32", "int8", "uint8"}


@dataclass(frozen=True)
class MarianFile:
    """The options and the weights of a file ``path``; Marian's matrices have their inputs first."""

    path: Path
    options: dict[str, Any]
    weights: dict[str, Tensor]

    def option(self, name: str, default: Any = None) -> Any:
        """An option; InputError if it is neither in the file nor has a default."""
        value = self.options.get(name, default)
        if value is None:
            raise InputError(f"{self.path}: the option {name} is missing")
        return value


def read_marian_file(path: Path) -> MarianFile:
    """Read an ``.npz`` file, without pickle; an array takes no more memory than its member has.

    Raises InputError for another file, or a damaged one.
    """
    arrays = {}
    with opened_members(path) as (archive, members):
        check_size(members, path)
        for info in members:
            try:
                arrays[info.filename.removesuffix(".npy")] = _array(archive, info)
            except (*DAMAGED, ValueError) as error:
                message = " ".join(str(error).split())
                raise InputError(
                    f"{path}: {info.filename} is damaged ({message}): copy it anew"
                ) from error
    if _OPTIONS not in arrays:
        raise InputError(f"{path}: it holds no {_OPTIONS}: not a model of Marian")
    try:
        options = yaml.safe_load(arrays.pop(_OPTIONS).tobytes().rstrip(b"\0").decode())
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: {_OPTIONS} is not YAML: copy the file anew") from error
    if not isinstance(options, dict):
        raise InputError(f"{path}: {_OPTIONS}: expected names and values")
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return MarianFile(path, options, weights)


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """One member; ValueError if its header asks for another size than it has."""
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError(f"version {version} of the format")
        shape, fortran, dtype = read(file)
        size = math.prod(shape) * dtype.itemsize
        if dtype.name not in _NUMBERS or fortran or file.tell() + size != info.file_size:
            raise ValueError(f"{dtype.name} of shape {shape} in {info.file_size:,} bytes")
        return np.frombuffer(bytearray(file.read(size)), dtype=dtype).reshape(shape)
