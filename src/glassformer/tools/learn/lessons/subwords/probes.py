"""Probes of byte-pair encoding."""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from glassformer.tools.learn.holes import Hole, axis
from glassformer.tools.learn.inputs import kept
from glassformer.tools.learn.lessons.subwords.plain import Pair, Subwords
from glassformer.tools.learn.situations import Situation

FIVE_WORDS = {"sing": 5, "singer": 2, "ring": 3, "king": 4, "bringing": 1}


def words(s: Situation, _: str) -> Any:
    return kept({word: 1 + place for place, word in enumerate(_words(s))})


def frequencies(s: Situation, _: str) -> Any:
    return kept({"".join(word): 1 + place % s.counts for place, word in enumerate(_words(s))})


def merges(s: Situation, _: str) -> Any:
    return kept([("a", "b"), ("b", "a"), ("ab", "a"), ("▁", "ab")][s.first :])


def letters(s: Situation, _: str) -> str:
    return "".join(_words(s)[0])


def _words(s: Situation) -> list[Subwords]:
    """Words of the situation's letters; the first is as long as the situation says."""
    draw = Random(s.length + 7 * s.earlier)
    lengths = [s.length, *(draw.randint(1, 5) for _ in range(s.axes.get("words", 1) - 1))]
    return [tuple(draw.choices(s.letters, k=length)) for length in lengths]


def subwords(answer: Any, _: Situation) -> dict[str, Any]:
    kind = "tuple" if isinstance(answer, tuple) else type(answer).__name__
    return {"subwords": _shown(answer), "type of your subwords": kind}


def counts(answer: Mapping[Pair, int], _: Situation) -> dict[str, Any]:
    rows = sorted(f"{_shown(pair)}: {count}" for pair, count in answer.items() if count)
    return {"counts": ", ".join(rows)}


def learned(answer: Iterable[Pair], _: Situation) -> dict[str, Any]:
    return {"merges": ", ".join(map(_shown, answer))}


def _shown(subwords: Subwords | str) -> str:
    if isinstance(subwords, str):
        raise TypeError(f"the function returns the text {subwords!r}; expected a tuple of subwords")
    return " ".join(subwords)


CHARACTERS = Hole("characters", subwords, word=letters)
COUNT = Hole("count_pairs", counts, words=words)
MERGE = Hole(
    "merge_pair",
    subwords,
    subwords=lambda s, _: _words(s)[0],
    pair=lambda s, _: ("a", s.second),
)
LEARN = Hole("learn_merges", learned, frequencies=frequencies, count=axis)
ENCODE = Hole("encode", subwords, word=letters, merges=merges)
TEXT: dict[str, Any] = {"letters": ("abc", "ab", "aaab", "a"), "length": (5, 1, 2, 13)}
PROBES = (
    CHARACTERS.probes(CHARACTERS.example(word="ring"), **TEXT | {"length": (5, 1, 2, 13, 0)}),
    COUNT.probes(
        COUNT.example(words={("▁", "a", "b"): 3, ("▁", "c", "a", "b", "a"): 2}),
        **TEXT,
        words=(3, 1, 7),
    ),
    MERGE.probes(
        MERGE.example(subwords=("▁", "xa", "b", "a", "a", "b", "b"), pair=("a", "b")),
        **TEXT,
        second=("b", "a"),
    ),
    LEARN.probes(
        LEARN.example(frequencies=FIVE_WORDS, count=4),
        **TEXT,
        words=(3, 1, 7),
        counts=(3, 1),
        count=(3, 0, 1, 99),
    ),
    ENCODE.probes(
        ENCODE.example(word="wing", merges=[("i", "n"), ("in", "g")]), **TEXT, first=(0, 2, 4)
    ),
)
