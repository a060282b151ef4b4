"""The probability of each target token as the translation of a source token.

IBM model 1 comes from Brown et al. 1993 (section 4.1, equations 12 to 14); this module has no empty
source word. Every target token of a pair comes from one of the pair's source tokens, which are
equally likely a priori. From t(f | e) = 1, expectation maximisation repeats

    c(f | e) = sum over pairs of  t(f | e) / sum over the source tokens e' of t(f | e')
    t(f | e) = c(f | e) / sum over f' of c(f' | e)
"""

import math

import numpy as np
from numpy.typing import NDArray

from glassformer.data.token_store import Sentences

__all__ = ["translation_table"]

_CELLS = 8_000_000  # source tokens times target tokens, summed over pairs: about 300 MB
_ROUNDS = 5


def translation_table(
    source: Sentences, target: Sentences, *, target_vocab_size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """e, f and t(f | e) for each source token e and target token f that share a pair.

    If there are very many pairs, the function reads every n-th pair.
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
    slot = np.concatenate(slots)  # the target token's index among all pairs' target tokens
    e, f = pairs // target_vocab_size, pairs % target_vocab_size
    probability = np.ones(len(pairs))
    for _ in range(_ROUNDS):
        share = probability[index]
        share /= np.bincount(slot, weights=share)[slot]
        counts = np.bincount(index, weights=share)
        probability = counts / np.bincount(e, weights=counts)[e]
    return e, f, probability
