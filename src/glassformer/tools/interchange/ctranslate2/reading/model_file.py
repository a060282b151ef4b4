"""``model.bin``: the options and weights of a CTranslate2 model, as its Python package writes them.

Numbers are little-endian. A text is its length (u16), its bytes and a zero, which counts as a byte.
The file has version (u32), specification (text), revision (u32), the number of variables (u32), the
variables, the number of aliases (u32), the aliases. A variable has name, rank (u8), dimensions (u32
each), type (u8), bytes (u32), values. An alias has a new name and the variable's name. In version 3
the type is the width of a number; version 2 has no aliases.

An int8 weight is ``round(weight * scale)`` with a scale for each row, in the variable ``_scale``.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from glassformer.support.errors import InputError
from glassformer.support.strangers import opened

__all__ = ["ModelFile", "read_model_file"]

_VERSIONS = range(2, 7)
_TYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
_OF_WIDTH = {1: torch.int8, 2: torch.int16, 4: torch.float32}  # before version 4
_MOST_DIMENSIONS = 4


@dataclass(frozen=True)
class ModelFile:
    """The content of the file ``path``; an alias shares the tensor of its variable."""

    path: Path
    version: int
    specification: str
    stored: Mapping[str, Tensor]

    def weight(self, name: str) -> Tensor:
        """A weight in float32, from any format in the file."""
        values = self.stored[name]
        numbers = values.float()
        if not values.is_floating_point():
            scale = self.stored.get(f"{name}_scale")
            if scale is None or scale.dim() > 1 or (scale.dim() == 1 and len(scale) != len(values)):
                raise InputError(
                    f"{self.path}: {name} is quantized, but {name}_scale is missing or has another"
                    " length: convert the model anew"
                )
            numbers = numbers / scale.float().view(-1, *[1] * (values.dim() - 1))
        if not numbers.isfinite().all():
            raise InputError(
                f"{self.path}: {name} holds NaN or infinity: the file is damaged: copy it anew"
            )
        return numbers

    def same(self, first: str, second: str) -> bool:
        """Whether two weights are equal."""
        pairs = (
            [self.stored.get(name + end) for name in (first, second)] for end in ("", "_scale")
        )
        return all(
            left is right or (left is not None and right is not None and torch.equal(left, right))
            for left, right in pairs
        )

    def option(self, name: str, default: float = 0) -> int | float:
        """The number of an option, in the file's type, because 1.0 and 1 can differ in meaning.

        In old files, encoder and decoder share an option, whose name has no side.
        """
        values = self.stored.get(name, self.stored.get(name.rpartition("/")[2]))
        if values is None:
            return default
        if values.numel() != 1:
            raise InputError(f"{self.path}: {name} has {values.numel()} values, expected one")
        return values.item()


def read_model_file(path: Path) -> ModelFile:
    """Read a ``model.bin``, with no more memory than the file's size.

    Raises InputError for a file that is cut short or has another format.
    """
    try:
        with opened(path) as file:
            return _read(_Reader(file, path.stat().st_size), path)
    except InputError:
        raise
    except (ValueError, struct.error) as error:
        raise InputError(
            f"{path}: not a model of CTranslate2, or cut short ({error}): copy it anew"
        ) from error


class _Reader:
    """Reads numbers and texts from a file; ValueError if the file ends too early."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.left = file, size

    def content(self, size: int) -> bytearray:
        if size > self.left:
            raise ValueError(f"{size:,} bytes must follow, and only {self.left:,} follow")
        self.left -= size
        return bytearray(self.file.read(size))

    def number(self, kind: str) -> int:
        [number] = struct.unpack(f"<{kind}", self.content(struct.calcsize(f"<{kind}")))
        return int(number)

    def text(self) -> str:
        return self.content(self.number("H"))[:-1].decode()


def _read(reader: _Reader, path: Path) -> ModelFile:
    version = reader.number("I")
    if version not in _VERSIONS:
        raise InputError(
            f"{path} has version {version} of the format: expected {_VERSIONS[0]} to"
            f" {_VERSIONS[-1]}; convert the original model with a current CTranslate2"
        )
    specification = reader.text()
    reader.number("I")  # the revision; the names of the variables tell the content
    stored: dict[str, Tensor] = {}
    for _ in range(reader.number("I")):
        name = reader.text()
        stored[name] = _values(reader, name, version)
    for _ in range(reader.number("I") if version >= 3 else 0):
        alias, name = reader.text(), reader.text()
        for ending in ("", "_scale"):
            if f"{name}{ending}" in stored:
                stored[f"{alias}{ending}"] = stored[f"{name}{ending}"]
    return ModelFile(path, version, specification, stored)


def _values(reader: _Reader, name: str, version: int) -> Tensor:
    rank = reader.number("B")
    if rank > _MOST_DIMENSIONS:
        raise ValueError(f"{name!r} has {rank} dimensions")
    shape = [reader.number("I") for _ in range(rank)]
    kind = reader.number("B")
    if version >= 4:
        dtype = _TYPES[kind] if kind < len(_TYPES) else None
        size = reader.number("I")
    else:
        dtype = _OF_WIDTH.get(kind)
        size = reader.number("I") * kind
    if dtype is None or size == 0 or size != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name!r} of shape {shape} and type {kind} has {size:,} bytes")
    return torch.frombuffer(reader.content(size), dtype=dtype).reshape(shape)
