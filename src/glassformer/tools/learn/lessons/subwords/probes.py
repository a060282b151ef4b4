"""Probes of byte-pair encoding."""

from copy import copy
from random import Random
from typing import Any

from glassformer.tools.learn.check import Check, Probe, Results, Solution, probe
from glassformer.tools.learn.inputs import running
from glassformer.tools.learn.lessons.subwords.plain import Pair, Subwords
from glassformer.tools.learn.situations import NO_NUMBERS, NONE, Situation, situations

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


def pairs(solution: Solution, s: Situation) -> dict[str, Any]:
    words = {solution_word: 1 + place for place, solution_word in enumerate(_words(s))}
    counts = solution.count_pairs(_kept(words))
    rows = sorted(f"{_shown(pair)}: {count}" for pair, count in counts.items() if count)
    return {"counts": ", ".join(rows)}


def merges(solution: Solution, s: Situation) -> dict[str, Any]:
    frequencies = {"".join(word): 1 + place % s.counts for place, word in enumerate(_words(s))}
    learned = solution.learn_merges(_kept(frequencies), s.count)
    return {"merges": ", ".join(_shown(pair) for pair in learned)}


def merged(solution: Solution, s: Situation) -> dict[str, Any]:
    word = _words(s)[0]
    return {f"subwords of {''.join(word)}": _shown(solution.merge_pair(word, ("a", s.second)))}


def encoded(solution: Solution, s: Situation) -> dict[str, Any]:
    word, merges = "".join(_words(s)[0]), [("a", "b"), ("b", "a"), ("ab", "a"), ("▁", "ab")]
    chosen = _kept(merges[s.first :])
    return {f"subwords of ▁{word}": _shown(solution.encode(word, chosen))}


def _words(s: Situation) -> list[Subwords]:
    """Words of the situation's letters; the first is as long as the situation says."""
    draw = Random(s.length + 7 * s.earlier)
    return [
        tuple(draw.choices(s.letters, k=s.length if place == 0 else draw.randint(1, 5)))
        for place in range(s.words)
    ]


def _kept(values: Any) -> Any:
    """The values for a solution; the check notes if the solution changes them."""
    before = copy(values)
    running().watched.append(("an input", lambda: values == before and [*values] == [*before]))
    return values


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


TEXT: dict[str, Any] = {
    **NO_NUMBERS,
    "batch": (1,),
    "layout": NONE,
    "letters": ("abc", "ab", "aaab", "a"),
    "length": (5, 1, 2, 13),
}
CHECK = Check(
    probes={
        "characters": (one_word,),
        "count_pairs": (
            _counted({("▁", "a", "b"): 3, ("▁", "c", "a", "b", "a"): 2}),
            *situations("words", pairs, **TEXT, words=(3, 1, 7)),
        ),
        "merge_pair": (
            _merged(("a", "b", "c", "a", "b", "c"), ("a", "b")),
            _merged(("▁", "b", "a", "b"), ("a", "b")),
            _merged(("a", "a", "a"), ("a", "a")),
            _merged(("▁", "xa", "b", "a", "by"), ("a", "b")),
            *situations("a word", merged, **TEXT, words=(1,), second=("b", "a")),
        ),
        "learn_merges": (
            _learned(FIVE_WORDS, 4),
            _learned({"xy": 1, "ab": 1, "cab": 1, "yz": 5}, 3),
            *situations(
                "words to learn",
                merges,
                **TEXT,
                words=(3, 1, 7),
                counts=(3, 1),
                count=(3, 0, 1, 99),
            ),
        ),
        "encode": (
            _encoded("wing", ("i", "n"), ("in", "g")),
            _encoded("abc", ("b", "c"), ("a", "b"), ("▁", "a")),
            _encoded("abc", ("b", "c"), ("a", "b"), ("a", "bc")),
            _encoded("abcdab", ("c", "d"), ("a", "b"), ("b", "cd"), ("ab", "cd"), ("▁", "ab")),
            *situations("a word to encode", encoded, **TEXT, words=(1,), first=(0, 2, 4)),
        ),
    },
    laws={"Subwords, put together, are the word with its mark.": text},
)
