"""Reads word vectors in the text format of word2vec, GloVe, fastText and BPEmb."""

from array import array
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.lines import read_lines
from glassformer.support.errors import InputError

__all__ = ["read_vectors"]

_MOST_NUMBERS = 1 << 30
_GREATEST = torch.finfo(torch.float32).max


def read_vectors(path: Path | str) -> tuple[list[str], Float[Tensor, "vocab d_model"]]:
    """The tokens and their vectors from a text file, plain or gzipped.

    Each line has a token and its numbers, with spaces between. A first line with two whole numbers,
    the sizes of the table, is skipped.

    Raises:
        InputError: a line has no token, or not as many finite numbers as the first line; or the
            file has no vector, or more than a billion numbers.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "vectors.txt")
    ...     _ = path.write_text("2 2\\n▁the 1 2\\n▁cat 3 4\\n", encoding="utf-8")
    ...     read_vectors(path)
    (['▁the', '▁cat'], tensor([[1., 2.],
            [3., 4.]]))
    """
    tokens: list[str] = []
    numbers, width = array("f"), 0
    for place, line in enumerate(read_lines(path), start=1):
        token, *fields = line.rstrip(" ").split(" ")
        if not line or (place == 1 and len(fields) == 1 and (token + fields[0]).isdecimal()):
            continue
        width = width or len(fields)
        while len(fields) > width and not _is_number(fields[0]):  # GloVe has tokens such as ". ."
            token = f"{token} {fields.pop(0)}"
        if not fields or len(fields) != width or not all(map(_is_number, fields)):
            raise InputError(
                f"{path}, line {place}: expected a token and {width or 'its'} finite numbers, with"
                f" spaces between, got {line[:40]!r}: correct the line, or give another file"
            )
        tokens.append(token)
        numbers.extend(map(float, fields))
        if len(numbers) > _MOST_NUMBERS:
            raise InputError(f"{path}: more than {_MOST_NUMBERS:,} numbers: give the first lines")
    if not tokens:
        raise InputError(f"{path}: no vectors: expected a token and its numbers on each line")
    return tokens, torch.tensor(numbers).view(-1, width)


def _is_number(field: str) -> bool:
    try:
        return abs(float(field)) <= _GREATEST and "_" not in field
    except ValueError:
        return False
