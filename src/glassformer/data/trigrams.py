"""Finds a text's language by its trigrams: three letters in a row, with blanks between words.

A profile holds the most frequent trigrams of a language (Cavnar and Trenkle 1994).
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

__all__ = ["Profile", "language_shares", "profile_of"]

_SIZE = 500  # the greatest number of trigrams in a profile
# The estimated frequency of a trigram is 1 / (rank + 30), or 1 / 2500 outside the profile.
_FIRST_RANK = 30
_LACKING = 5 * _SIZE
Profile = Annotated[str, Field(max_length=3 * _SIZE)]
"""The most frequent trigrams of a language, one after another."""


def _trigrams(text: str) -> list[str]:
    letters = (c if unicodedata.category(c)[0] in "LM" else " " for c in text.lower())
    words = f" {' '.join(''.join(letters).split())} "
    return [words[place : place + 3] for place in range(len(words) - 2)]


def profile_of(texts: Iterable[str]) -> str:
    """The profile of the texts, the most frequent trigram first.

    >>> profile_of(["No, no!", "on"])
    ' nono  ono non '
    """
    counts = Counter(trigram for text in texts for trigram in _trigrams(text))
    ranked = sorted(counts, key=lambda trigram: (-counts[trigram], trigram))
    return "".join(ranked[:_SIZE])


def language_shares(text: str, profiles: Mapping[str, str]) -> dict[str, float]:
    """For each language, the share of the text in that language, from 0 to less than 1.

    A language's share is the share of the text's trigrams in the language's profile, times the
    probability of the language.

    >>> shares = language_shares("oh", {"a": profile_of(["ah"]), "o": profile_of(["oh"])})
    >>> {language: round(share, 2) for language, share in shares.items()}
    {'a': 0.0, 'o': 0.67}
    """
    trigrams = _trigrams(text)
    logs, known = {}, {}
    for language, profile in profiles.items():
        ranks = {profile[place : place + 3]: place // 3 for place in range(0, len(profile), 3)}
        frequent = [ranks[trigram] for trigram in trigrams if trigram in ranks]
        known[language] = len(frequent) / (len(trigrams) + 1)
        rare = (len(trigrams) - len(frequent)) * math.log(_LACKING)
        logs[language] = -rare - math.fsum(math.log(rank + _FIRST_RANK) for rank in frequent)
    best = max(logs.values())
    weights = {language: math.exp(log - best) for language, log in logs.items()}
    whole = math.fsum(weights.values())
    return {language: known[language] * weight / whole for language, weight in weights.items()}
