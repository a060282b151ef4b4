"""Pretrained vectors of subwords or words, from the text format of word2vec.

A line has a subword and its numbers, with spaces between; a first line with the two sizes may
stand before them. BPEmb, fastText and GloVe write this format.
"""

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError

__all__ = ["read_vectors"]

_WIDEST = 10_000  # numbers of a vector; a longer line is no such file


def read_vectors(path: Path, tokenizer: Tokenizer) -> Float[Tensor, "vocab d_model"]:
    """The vector of each subword of the tokenizer, for :meth:`ScaledEmbedding.from_vectors`.

    A subword that the file lacks gets random numbers of the file's own size. A file with none of
    the subwords, or with vectors of different widths, raises InputError with the line.

    >>> from tempfile import TemporaryDirectory
    >>> from glassformer.data.tokenizer import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat", "the dog sat"], vocab_size=400)
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "vectors.txt")
    ...     _ = path.write_text("▁the 1 2\\n▁cat 3 4\\n", encoding="utf-8")
    ...     vectors = read_vectors(path, tokenizer)
    >>> vectors[tokenizer.encode("the cat")[:2]].tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    ids = {tokenizer.subword(place): place for place in range(tokenizer.vocab_size)}
    vectors: dict[int, list[float]] = {}
    width = 0
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            word, *numbers = line.rstrip("\n ").split(" ")
            if number == 1 and len(numbers) == 1:  # the two sizes
                continue
            width = width or len(numbers)
            if len(numbers) != width or not 0 < width <= _WIDEST:
                raise InputError(
                    f"{path}, line {number}: {len(numbers)} numbers; expected a subword and"
                    f" {width} numbers"
                )
            if word in ids:
                try:
                    vectors[ids[word]] = [float(each) for each in numbers]
                except ValueError as error:
                    raise InputError(f"{path}, line {number}: {error}") from error
    if not vectors:
        raise InputError(f"{path}: it has none of the tokenizer's {len(ids):,} subwords")
    found = torch.tensor(list(vectors.values()))
    table = torch.randn(tokenizer.vocab_size, width) * found.std()
    table[list(vectors)] = found
    return table
