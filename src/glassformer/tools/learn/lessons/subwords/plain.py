"""Byte-pair encoding on a few words (Sennrich et al. 2016). The tokenizer runs SentencePiece."""

from collections import Counter
from itertools import pairwise

Subwords = tuple[str, ...]
Pair = tuple[str, str]


def characters(word: str) -> Subwords:
    """The mark of a word's begin, then its letters: the subwords before any merge."""
    return ("▁", *word)


def count_pairs(words: dict[Subwords, int]) -> dict[Pair, int]:
    """The frequency of each pair of neighbours in the text; pairs stand in the order of the text.

    ``words`` has the frequency of each word.
    """
    counts: Counter[Pair] = Counter()
    for subwords, frequency in words.items():
        for pair in pairwise(subwords):
            counts[pair] += frequency
    return counts


def merge_pair(subwords: Subwords, pair: Pair) -> Subwords:
    """The subwords of a word; each occurrence of the pair, from the left, becomes one subword."""
    merged: list[str] = []
    place = 0
    while place < len(subwords):
        width = 2 if subwords[place : place + 2] == pair else 1
        merged.append("".join(subwords[place : place + width]))
        place += width
    return tuple(merged)


def learn_merges(frequencies: dict[str, int], count: int) -> list[Pair]:
    """Up to ``count`` merges; each joins the most frequent pair, or the first of equal pairs."""
    words = {characters(word): frequency for word, frequency in frequencies.items()}
    merges: list[Pair] = []
    while len(merges) < count and (pairs := count_pairs(words)):
        best = max(pairs, key=lambda pair: pairs[pair])
        merges.append(best)
        words = {merge_pair(subwords, best): words[subwords] for subwords in words}
    return merges


def encode(word: str, merges: list[Pair]) -> Subwords:
    """The subwords of any word after all merges, which run in the order of ``merges``."""
    subwords = characters(word)
    for pair in merges:
        subwords = merge_pair(subwords, pair)
    return subwords
