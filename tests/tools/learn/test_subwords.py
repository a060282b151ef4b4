"""The subwords lesson: laws of the plain form; right solutions pass, wrong ones are named."""

import itertools
from collections import defaultdict
from types import SimpleNamespace

import pytest

from glassformer.tools.learn.check import measure
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.lessons.subwords import plain as byte_pairs
from glassformer.tools.learn.lessons.subwords.probes import FIVE_WORDS


def verdict_on(function, hole):
    """The verdict on one function; the others are the package's."""
    judge = Judge.of(lesson("subwords"), hole)
    solution = SimpleNamespace(**{**vars(byte_pairs), hole: function})
    return judge.verdict(measure(judge.probes, solution))


def test_the_plain_form_agrees_with_another_library():
    tokenizers = pytest.importorskip("tokenizers")
    merges = byte_pairs.learn_merges(FIVE_WORDS, 8)
    letters = {letter: None for word in ["▁wqu", *FIVE_WORDS] for letter in word}
    known = [*letters, *("".join(pair) for pair in merges)]
    ids = {subword: index for index, subword in enumerate(known)}
    other = tokenizers.models.BPE(ids, merges)
    for word in [*FIVE_WORDS, "wing", "singing", "queering", "bringer"]:
        subwords = tuple(token.value for token in other.tokenize(f"▁{word}"))
        assert byte_pairs.encode(word, merges) == subwords


def test_the_numbers_of_the_lesson():
    right = lesson("subwords")
    merges = byte_pairs.learn_merges(FIVE_WORDS, 99)
    assert f"after {len(merges)} merges" in right.questions[0].answer
    assert merges[:2] == [("i", "n"), ("in", "g")]
    assert byte_pairs.encode("wing", merges[:2]) == ("▁", "w", "ing")
    for count, text in ((2, "▁ s ing ing"), (5, "▁sing ing"), (99, "▁sing ing")):
        assert " ".join(byte_pairs.encode("singing", merges[:count])) == text
        assert text in right.questions[0].answer
    assert " ".join(byte_pairs.encode("singing", merges[::-1])) in right.questions[1].answer


def merge_by_flag(subwords, pair):
    out, skip = [], False
    for i, piece in enumerate(subwords):
        if skip:
            skip = False
        elif i + 1 < len(subwords) and (piece, subwords[i + 1]) == pair:
            out.append(piece + subwords[i + 1])
            skip = True
        else:
            out.append(piece)
    return out


def count_by_index(words):
    counts = defaultdict(int)
    for w in words:
        for i in range(len(w) - 1):
            counts[w[i], w[i + 1]] += words[w]
    return dict(counts)


def encode_by_rank(word, merges):
    subwords = ["▁", *word]
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    while True:
        pairs = list(itertools.pairwise(subwords))
        best = min(pairs, key=lambda pair: ranks.get(pair, 10**9), default=None)
        if best not in ranks:
            return subwords
        subwords = list(byte_pairs.merge_pair(tuple(subwords), best))


@pytest.mark.parametrize(
    ("hole", "function"),
    [
        ("merge_pair", merge_by_flag),
        ("count_pairs", count_by_index),
        ("encode", encode_by_rank),
        ("characters", lambda word: ["▁", *list(word)]),
    ],
)
def test_unusual_right_solutions_pass(hole, function):
    verdict = verdict_on(function, hole)
    assert verdict.outcome == "right", verdict.lines


def merge_by_text(subwords, pair):
    return tuple(" ".join(subwords).replace(f"{pair[0]} {pair[1]}", pair[0] + pair[1]).split())


def merge_without_end(subwords, pair):
    out, i = [], 0
    while i < len(subwords) - 1:
        if (subwords[i], subwords[i + 1]) == pair:
            out.append(subwords[i] + subwords[i + 1])
            i += 2
        else:
            out.append(subwords[i])
            i += 1
    return tuple(out)


def merge_in_for_loop(subwords, pair):
    out = []
    for i in range(len(subwords)):
        if subwords[i : i + 2] == pair:
            out.append("".join(pair))
        else:
            out.append(subwords[i])
    return tuple(out)


def count_of_list(words):
    counts = defaultdict(int)
    for subwords in words:
        for left, right in itertools.pairwise(subwords):
            counts[left, right] += 1
    return counts


def count_by_assignment(words):
    counts = {}
    for subwords, n in words.items():
        for pair in itertools.pairwise(subwords):
            counts[pair] = n
    return counts


def learn_top_pairs(frequencies, count):
    pairs = byte_pairs.count_pairs({("▁", *word): n for word, n in frequencies.items()})
    return [pair for pair, _ in pairs.most_common(count)]


def learn_by_sorting(frequencies, count):
    words = {("▁", *word): n for word, n in frequencies.items()}
    merges = []
    for _ in range(count):
        pairs = byte_pairs.count_pairs(words)
        if not pairs:
            break
        best = sorted((n, pair) for pair, n in pairs.items())[-1][1]
        merges.append(best)
        words = {byte_pairs.merge_pair(word, best): n for word, n in words.items()}
    return merges


def encode_greedily(word, merges):
    known = {left + right for left, right in merges}
    rest, out = "▁" + word, []
    while rest:
        end = len(rest)
        while end > 1 and rest[:end] not in known:
            end -= 1
        out.append(rest[:end])
        rest = rest[end:]
    return out


def encode_of_letters(word, merges):
    subwords = tuple(word)
    for pair in merges:
        subwords = byte_pairs.merge_pair(subwords, pair)
    return subwords


@pytest.mark.parametrize(
    ("hole", "function", "mistake"),
    [
        ("merge_pair", merge_by_text, "merge-inside-subwords"),
        ("merge_pair", merge_without_end, "merge-last-lost"),
        ("merge_pair", merge_in_for_loop, "merge-keeps-second"),
        ("count_pairs", count_of_list, "pairs-without-frequency"),
        ("count_pairs", count_by_assignment, "pairs-overwritten"),
        ("learn_merges", learn_top_pairs, "learn-counts-once"),
        ("learn_merges", learn_by_sorting, "learn-greatest-of-equals"),
        ("encode", encode_greedily, "encode-longest-first"),
        ("encode", encode_of_letters, "mark-missing"),
    ],
)
def test_wrong_solutions_are_named(hole, function, mistake):
    verdict = verdict_on(function, hole)
    assert verdict.mistakes == ((mistake,),), verdict.lines


def test_an_unknown_mistake_gets_no_name():
    verdict = verdict_on(lambda subwords, _pair: subwords[::-1], "merge_pair")
    assert verdict.outcome in ("law", "difference")
