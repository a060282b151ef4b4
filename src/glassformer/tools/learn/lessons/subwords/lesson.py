# %% [markdown]
# # Subwords: byte-pair encoding
#
# > "Sentences were encoded using byte-pair encoding, which has a shared
# > source-target vocabulary of about 37000 tokens." (section 5.1)
#
# A vocabulary of words has no entry for a new word; a vocabulary of letters
# makes sentences long. Byte-pair encoding lies between. It begins with
# letters. Again and again it takes the two neighbours that stand side by side
# most often, and makes one subword of them. Frequent words become one subword,
# rare ones several, and a new word can always be spelled.
#
# A mark ▁ begins each word, so that the text can be put together again: ▁sing
# er ▁king is "singer king". No pair reaches across two words.
#
# The package's tokenizer does so with SentencePiece, on millions of words.

# %%
from collections import Counter

import torch

Subwords = tuple[str, ...]
Pair = tuple[str, str]
FREQUENCIES = {"sing": 5, "singer": 2, "ring": 3, "king": 4, "bringing": 1}


def characters(word: str) -> Subwords:
    """The mark ▁ and the letters: "ring" -> ("▁", "r", "i", "n", "g")"""
    # One line.
    raise NotImplementedError


def count_pairs(words: dict[Subwords, int]) -> dict[Pair, int]:
    """How often the text has each pair; the first pair of it is first.

    words: the subwords of each word, and how often the text has that word

    {("a", "b", "a"): 2, ("a", "b"): 3} -> {("a", "b"): 5, ("b", "a"): 2}
    """
    # Four or five lines.
    raise NotImplementedError


def merge_pair(subwords: Subwords, pair: Pair) -> Subwords:
    """A word's subwords, with each such pair as one, from left to right.

    ("a", "b", "c", "a", "b") and the pair ("a", "b") -> ("ab", "c", "ab")
    """
    # Six to nine lines.
    raise NotImplementedError


def learn_merges(frequencies: dict[str, int], count: int) -> list[Pair]:
    """The merges in their order: each time the most frequent pair.

    Of equals it is the first. Count again after each merge. End after `count`
    merges, or if no pair is left.

    FREQUENCIES and 2 -> [("i", "n"), ("in", "g")]
    """
    # Six to eight lines.
    raise NotImplementedError


def encode(word: str, merges: list[Pair]) -> Subwords:
    """The subwords of any word: all merges in their order.

    "wing" and [("i", "n"), ("in", "g")] -> ("▁", "w", "ing")
    """
    # Four lines.
    raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Learn 2, 5 and 99 merges from FREQUENCIES. How do they encode "singing"?
# 2. Encode "singing" with all merges of FREQUENCIES, first to last, and then
#    last to first.
