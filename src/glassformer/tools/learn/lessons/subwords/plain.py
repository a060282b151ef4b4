"""Byte-pair encoding on a few words (Sennrich et al. 2016). The tokenizer runs SentencePiece."""

from collections import Counter
from itertools import pairwise

__all__ = ["Pair", "Subwords", "characters", "count_pairs", "encode", "learn_merges", "merge_pair"]

Subwords = tuple[str, ...]
Pair = tuple[str, str]


def characters(word: str) -> Subwords:
    """The mark of a word's begin, then its letters: the subwords before any merge."""
    return ("▁", *word)


def count_pairs(words: dict[Subwords, int]) -> dict[Pair, int]:
    """How often each pair of neighbours stands in the text, in the order of their first places.

    ``words`` has the frequency of each word.
    """
    counts: Counter[Pair] = Counter()
    for subwords, frequency in words.items():
        for pair in pairwise(subwords):
            counts[pair] += frequency
    return counts


def merge_pair(subwords: Subwords, pair: Pair) -> Subwords:
    """The subwords of a word with each occurrence of the pair as one, from left to right."""
    merged: list[str] = []
    place = 0
    while place < len(subwords):
        width = 2 if subwords[place : place + 2] == pair else 1
        merged.append("".join(subwords[place : place + width]))
        place += width
    return tuple(merged)


def learn_merges(frequencies: dict[str, int], count: int) -> list[Pair]:
    """Up to ``count`` merges: each time the most frequent pair, of equals the first."""
    words = {characters(word): frequency for word, frequency in frequencies.items()}
    merges: list[Pair] = []
    while len(merges) < count and (pairs := count_pairs(words)):
        best = max(pairs, key=lambda pair: pairs[pair])
        merges.append(best)
        words = {merge_pair(subwords, best): words[subwords] for subwords in words}
    return merges


def encode(word: str, merges: list[Pair]) -> Subwords:
    """The subwords of any word: the merges in the order in which they were learned."""
    subwords = characters(word)
    for pair in merges:
        subwords = merge_pair(subwords, pair)
    return subwords
