"""Probes of byte-pair encoding."""

from typing import Any

from glassformer.learn.check import Check, Results, Solution
from glassformer.learn.lessons.subwords.plain import Pair, Subwords

__all__ = ["CHECK"]

FIVE_WORDS = {"sing": 5, "singer": 2, "ring": 3, "king": 4, "bringing": 1}


def one_word(solution: Solution) -> dict[str, Any]:
    """the word ring"""
    return {"characters": _shown(solution.characters("ring"))}


def two_words(solution: Solution) -> dict[str, Any]:
    """{("▁", "a", "b"): 3, ("▁", "c", "a", "b", "a"): 2}"""
    return _counted(solution, {("▁", "a", "b"): 3, ("▁", "c", "a", "b", "a"): 2})


def repeated_letters(solution: Solution) -> dict[str, Any]:
    """{("a", "a", "a", "b", "b"): 2, ("a", "b", "a", "b"): 5}"""
    return _counted(solution, {("a", "a", "a", "b", "b"): 2, ("a", "b", "a", "b"): 5})


def two_places(solution: Solution) -> dict[str, Any]:
    """("a", "b", "c", "a", "b", "c"), the pair ("a", "b")"""
    return _merged(solution, ("a", "b", "c", "a", "b", "c"), ("a", "b"))


def last_place(solution: Solution) -> dict[str, Any]:
    """("▁", "b", "a", "b"), the pair ("a", "b")"""
    return _merged(solution, ("▁", "b", "a", "b"), ("a", "b"))


def overlap(solution: Solution) -> dict[str, Any]:
    """("a", "a", "a"), the pair ("a", "a")"""
    return _merged(solution, ("a", "a", "a"), ("a", "a"))


def longer_subwords(solution: Solution) -> dict[str, Any]:
    """("▁", "xa", "b", "a", "by"), the pair ("a", "b")"""
    return _merged(solution, ("▁", "xa", "b", "a", "by"), ("a", "b"))


def five_words(solution: Solution) -> dict[str, Any]:
    """FREQUENCIES, 4 merges"""
    return _learned(solution, FIVE_WORDS, 4)


def frequent_word(solution: Solution) -> dict[str, Any]:
    """{"xy": 1, "ab": 1, "cab": 1, "yz": 5}, 3 merges"""
    return _learned(solution, {"xy": 1, "ab": 1, "cab": 1, "yz": 5}, 3)


def all_merges(solution: Solution) -> dict[str, Any]:
    """{"no": 1, "on": 2}, 9 merges: there are only 4"""
    return _learned(solution, {"no": 1, "on": 2}, 9)


def new_word(solution: Solution) -> dict[str, Any]:
    """wing, the merges i n, in g"""
    return _encoded(solution, "wing", ("i", "n"), ("in", "g"))


def order_of_merges(solution: Solution) -> dict[str, Any]:
    """abc, the merges b c, a b, ▁ a"""
    return _encoded(solution, "abc", ("b", "c"), ("a", "b"), ("▁", "a"))


def merge_in_two_steps(solution: Solution) -> dict[str, Any]:
    """abc, the merges b c, a b, a bc"""
    return _encoded(solution, "abc", ("b", "c"), ("a", "b"), ("a", "bc"))


def long_word(solution: Solution) -> dict[str, Any]:
    """abcdab, the merges c d, a b, b cd, ab cd, ▁ ab"""
    merges = (("c", "d"), ("a", "b"), ("b", "cd"), ("ab", "cd"), ("▁", "ab"))
    return _encoded(solution, "abcdab", *merges)


def _shown(subwords: Subwords | str) -> str:
    if isinstance(subwords, str):
        raise TypeError(f"the function returns the text {subwords!r}; expected a tuple of subwords")
    return " ".join(subwords)


def _counted(solution: Solution, words: dict[Subwords, int]) -> dict[str, Any]:
    counts = solution.count_pairs(dict(words))
    rows = sorted(f"{_shown(pair)}: {count}" for pair, count in counts.items() if count)
    return {"counts": ", ".join(rows)}


def _merged(solution: Solution, subwords: Subwords, pair: Pair) -> dict[str, Any]:
    return {"subwords": _shown(solution.merge_pair(subwords, pair))}


def _learned(solution: Solution, frequencies: dict[str, int], count: int) -> dict[str, Any]:
    merges = solution.learn_merges(dict(frequencies), count)
    return {"merges": ", ".join(_shown(pair) for pair in merges)}


def _encoded(solution: Solution, word: str, *merges: Pair) -> dict[str, Any]:
    return {"subwords": _shown(solution.encode(word, list(merges)))}


def text(results: Results) -> str | None:
    """The first word whose letters the subwords do not keep."""
    wanted = {
        "new_word": "▁wing",
        "order_of_merges": "▁abc",
        "merge_in_two_steps": "▁abc",
        "long_word": "▁abcdab",
    }
    wanted |= {"two_places": "abcabc", "last_place": "▁bab", "overlap": "aaa"}
    wanted |= {"one_word": "▁ring", "longer_subwords": "▁xababy"}
    for probe, word in wanted.items():
        for value in results.get(probe, {}).values():
            if str(value).replace(" ", "") != word:
                return f"The subwords {value} make {str(value).replace(' ', '')}, not {word}."
    return None


CHECK = Check(
    probes={
        "characters": (one_word,),
        "count_pairs": (two_words, repeated_letters),
        "merge_pair": (two_places, last_place, overlap, longer_subwords),
        "learn_merges": (five_words, frequent_word, all_merges),
        "encode": (new_word, order_of_merges, merge_in_two_steps, long_word),
    },
    laws={"Subwords, put together, are the word with its mark.": text},
)
