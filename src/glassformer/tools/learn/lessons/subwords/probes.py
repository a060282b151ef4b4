"""Probes of byte-pair encoding."""

from typing import Any

from glassformer.tools.learn.check import Check, Probe, Results, Solution, probe
from glassformer.tools.learn.lessons.subwords.plain import Pair, Subwords

FIVE_WORDS = {"sing": 5, "singer": 2, "ring": 3, "king": 4, "bringing": 1}


def one_word(solution: Solution) -> dict[str, Any]:
    """the word ring"""
    return {"subwords of ▁ring": _shown(solution.characters("ring"))}


def _counted(words: dict[Subwords, int]) -> Probe:
    def counted(solution: Solution) -> dict[str, Any]:
        counts = solution.count_pairs(dict(words))
        rows = sorted(f"{_shown(pair)}: {count}" for pair, count in counts.items() if count)
        return {"counts": ", ".join(rows)}

    return probe(str(words), counted)


def _merged(subwords: Subwords, pair: Pair) -> Probe:
    return probe(
        f"{subwords}, the pair {pair}",
        lambda solution: {
            f"subwords of {''.join(subwords)}": _shown(solution.merge_pair(subwords, pair))
        },
    )


def _learned(frequencies: dict[str, int], count: int) -> Probe:
    def learned(solution: Solution) -> dict[str, Any]:
        merges = solution.learn_merges(dict(frequencies), count)
        return {"merges": ", ".join(_shown(pair) for pair in merges)}

    return probe(f"{frequencies}, {count} merges", learned)


def _encoded(word: str, *merges: Pair) -> Probe:
    return probe(
        f"{word}, the merges {', '.join(map(_shown, merges))}",
        lambda solution: {f"subwords of ▁{word}": _shown(solution.encode(word, list(merges)))},
    )


def _shown(subwords: Subwords | str) -> str:
    if isinstance(subwords, str):
        raise TypeError(f"the function returns the text {subwords!r}; expected a tuple of subwords")
    return " ".join(subwords)


def text(results: Results) -> str | None:
    """Evidence with the first word whose subwords have other letters than the word."""
    for values in results.values():
        for name, value in values.items():
            word, letters = name.removeprefix("subwords of "), str(value).replace(" ", "")
            if word not in (name, letters):  # equal to name: a value of another hole
                return f"The subwords {value} make {letters}, not {word}."
    return None


CHECK = Check(
    probes={
        "characters": (one_word,),
        "count_pairs": (
            _counted({("▁", "a", "b"): 3, ("▁", "c", "a", "b", "a"): 2}),
            _counted({("a", "a", "a", "b", "b"): 2, ("a", "b", "a", "b"): 5}),
        ),
        "merge_pair": (
            _merged(("a", "b", "c", "a", "b", "c"), ("a", "b")),
            _merged(("▁", "b", "a", "b"), ("a", "b")),
            _merged(("a", "a", "a"), ("a", "a")),
            _merged(("▁", "xa", "b", "a", "by"), ("a", "b")),
        ),
        "learn_merges": (
            _learned(FIVE_WORDS, 4),
            _learned({"xy": 1, "ab": 1, "cab": 1, "yz": 5}, 3),
            _learned({"no": 1, "on": 2}, 9),  # there are only 4
        ),
        "encode": (
            _encoded("wing", ("i", "n"), ("in", "g")),
            _encoded("abc", ("b", "c"), ("a", "b"), ("▁", "a")),
            _encoded("abc", ("b", "c"), ("a", "b"), ("a", "bc")),
            _encoded("abcdab", ("c", "d"), ("a", "b"), ("b", "cd"), ("ab", "cd"), ("▁", "ab")),
        ),
    },
    laws={"Subwords, put together, are the word with its mark.": text},
)
