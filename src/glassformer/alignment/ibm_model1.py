"""Which target tokens a source token is translated by: the tables of a vocabulary shortlist.

IBM model 1 (Brown et al. 1993, section 4.1; its estimation in equations 12 to 14, here without the
empty source word): every target token of a pair comes from one of the pair's source tokens, each
as likely as the other before one looks. With t(f | e) = 1 at first, again and again,

    c(f | e) = sum over pairs of  t(f | e) / sum over the source tokens e' of t(f | e')
    t(f | e) = c(f | e) / sum over f' of c(f' | e)
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.token_store import Packed, Sentences
from glassformer.data.tokenizer import Tokenizer

__all__ = ["shortlist_tensors", "translation_table"]

_CELLS = 8_000_000  # source tokens times target tokens, summed over pairs: about 300 MB
_ROUNDS = 5


def shortlist_tensors(
    packed: Packed,
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    likely: int = 50,
    frequent: int = 100,
) -> dict[str, Tensor]:
    """``likely`` target tokens of each source token, and the most ``frequent`` ones of all.

    To the likely ones comes the target token that is spelt as the source token is: names,
    numbers and the bytes of rare characters are copied.
    """
    source, target = tokenizers
    table = np.full((source.vocab_size, likely + 1), -1, np.int32)
    sources, targets, ranks = _ranked(packed, target.vocab_size)
    kept = ranks < likely
    table[sources[kept], ranks[kept]] = targets[kept]
    spelt = {target.subword(index): index for index in range(target.vocab_size)}
    table[:, likely] = [spelt.get(source.subword(index), -1) for index in range(source.vocab_size)]
    counts = np.bincount(packed.target.ids, minlength=target.vocab_size)
    often = np.argsort(-counts, kind="stable")[: min(frequent, np.count_nonzero(counts))]
    return {"likely": torch.from_numpy(table), "frequent": torch.from_numpy(often.astype(np.int32))}


def translation_table(
    source: Sentences, target: Sentences, *, target_vocab_size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """e, f and t(f | e) for each source token e and target token f that share a pair.

    Where there are very many pairs, every n-th is read.
    """
    cells = source.lengths.astype(np.int64) * target.lengths
    every = max(1, math.ceil(cells.sum() / _CELLS))
    keys, slots, filled = [], [], 0
    for row in range(0, len(source), every):
        e, f = source[row].astype(np.int64), target[row].astype(np.int64)
        keys.append((e[:, None] * target_vocab_size + f).ravel())
        slots.append(np.tile(np.arange(filled, filled + len(f)), len(e)))
        filled += len(f)
    pairs, index = np.unique(np.concatenate(keys), return_inverse=True)
    slot = np.concatenate(slots)  # the target token, among those of all pairs
    e, f = pairs // target_vocab_size, pairs % target_vocab_size
    probability = np.ones(len(pairs))
    for _ in range(_ROUNDS):
        share = probability[index]
        share /= np.bincount(slot, weights=share)[slot]
        counts = np.bincount(index, weights=share)
        probability = counts / np.bincount(e, weights=counts)[e]
    return e, f, probability


def _ranked(
    packed: Packed, target_vocab_size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """e, f and the rank of f among the translations of e, from 0."""
    e, f, probability = translation_table(
        packed.source, packed.target, target_vocab_size=target_vocab_size
    )
    order = np.lexsort((f, -probability, e))
    e, f = e[order], f[order]
    return e, f, np.arange(len(e)) - np.searchsorted(e, e)
