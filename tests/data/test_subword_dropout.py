"""Random segmentations: right by the papers, and the same in every process."""

import math
import random
import subprocess
import sys
from collections import Counter

import pytest

from glassformer.data.subword_dropout import Piece, SubwordSampler
from glassformer.data.tokenizer import train_tokenizer

LINES = ["the lower the lowest", "a newer and wider way", "low new wide slow est er"] * 4


def bpe(dropout):
    """The letters of "abc", then ab, then abc; ids in this order."""
    texts = ["a", "b", "c", "ab", "abc"]
    scores = [-9.0, -9.0, -9.0, 0.0, -1.0]
    pieces = {t: Piece(i, s) for i, (t, s) in enumerate(zip(texts, scores, strict=True))}
    return SubwordSampler("bpe", pieces, texts, dropout=dropout)


def shares(sampler, word, count=3_000):
    draws = random.Random(2)
    found = Counter(tuple(sampler.draw(word, draws)) for _ in range(count))
    return {key: number / count for key, number in found.items()}


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_each_merge_is_dropped_with_its_chance(dropout):
    found = shares(bpe(dropout), (4,))

    kept = 1 - dropout
    by_hand = {(4,): kept**2, (3, 2): kept * dropout, (0, 1, 2): dropout}
    assert found == pytest.approx(by_hand, abs=0.035)


def test_unigram_draws_by_the_power_of_the_probability():
    texts, chances = ["a", "b", "ab"], (0.5, 0.3, 0.2)
    pieces = {t: Piece(i, math.log(p)) for i, (t, p) in enumerate(zip(texts, chances, strict=True))}
    sampler = SubwordSampler("unigram", pieces, texts, dropout=0.04)  # alpha = 0.02 / 0.04

    found = shares(sampler, (2,))

    whole, parts = 0.2**0.5, (0.5 * 0.3) ** 0.5
    expected = {(2,): whole / (whole + parts), (0, 1): parts / (whole + parts)}
    assert found == pytest.approx(expected, abs=0.035)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_hardly_any_dropout_is_the_usual_segmentation(kind):
    tokenizer = train_tokenizer(LINES, vocab_size=320, kind=kind)

    # For unigram, alpha is then so large that only the most probable one is drawn.
    assert tokenizer.sample_batch(LINES, dropout=1e-9, seed=1) == tokenizer.encode_batch(LINES)


def test_without_a_drop_the_merges_are_sentencepieces():
    tokenizer = train_tokenizer(LINES, vocab_size=320)
    tokenizer.sample_batch(["a"], dropout=0.1, seed=0)
    [sampler] = tokenizer._samplers.values()

    for line in LINES:
        for word in sampler._words(tokenizer.encode(line)):
            spelt = "".join(sampler.texts[index] for index in word)
            assert sampler._merged(list(spelt), 0, None) == list(word)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_any_text_comes_back(kind):
    tokenizer = train_tokenizer(LINES, vocab_size=320, kind=kind)
    texts = ["the  lowest ", "", " ", "\U0001f404 café ▁ low", "lower\ud7ff", "x" * 300]

    for seed in range(20):
        found = tokenizer.sample_batch(texts, dropout=0.4, seed=seed)
        assert [tokenizer.decode(ids) for ids in found] == texts


SCRIPT = """
from glassformer.data.tokenizer import train_tokenizer
lines = {lines!r}
tokenizer = train_tokenizer(lines, vocab_size=320, kind={kind!r})
print(tokenizer.sample_batch(lines, dropout=0.3, seed=7))
"""


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_another_process_draws_the_same(kind):
    script = SCRIPT.format(lines=LINES, kind=kind)
    others = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    here = train_tokenizer(LINES, vocab_size=320, kind=kind)

    drawn = str(here.sample_batch(LINES, dropout=0.3, seed=7))
    assert [other.stdout.strip() for other in others] == [drawn, drawn]
