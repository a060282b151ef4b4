"""Repetition penalty, n-grams that do not repeat, minimum length: in all three searches.

The oracle works with lists of floats and shares no code with the package.
"""

import math
from functools import partial

import pytest
import torch
from transformers.generation.logits_process import (
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
)

from glassformer.decoding.batched import DecodingSettings, decode_sentences
from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.engine import SearchOptions
from glassformer.decoding.greedy import greedy
from glassformer.decoding.logits_processors import MinLength, NoRepeatNgram, RepetitionPenalty
from glassformer.decoding.sampling import sample
from glassformer.decoding.vocabulary import DEFAULT_IDS
from tests.tables import every

BOS, EOS, SPECIAL = 2, 3, range(4)
SETTINGS = [
    {"repetition_penalty": 1.7},
    {"no_repeat_ngram": 1},
    {"no_repeat_ngram": 2},
    {"no_repeat_ngram": 3},
    {"min_length": 3},
    {"repetition_penalty": 3.0, "no_repeat_ngram": 2, "min_length": 4},
]


def distribution(logits, target, *, repetition_penalty=1.0, no_repeat_ngram=0, min_length=0):
    """log p(next token) after `target`, by token, as the options change it."""
    scores = list(logits)
    for token in set(target):
        scores[token] *= repetition_penalty if scores[token] < 0 else 1 / repetition_penalty
    for token in range(len(scores)):
        longer, size = (*target, token), no_repeat_ngram
        ngrams = [longer[i : i + size] for i in range(len(longer) - size + 1)]
        if size and ngrams[-1:] and ngrams[-1] in ngrams[:-1]:
            scores[token] = -math.inf
    if len(target) < min_length:
        scores = [-math.inf if token in SPECIAL else score for token, score in enumerate(scores)]
    total = math.log(sum(math.exp(score) for score in scores))
    return [score - total for score in scores]


def log_probability(language, sentence, target, options):
    total, before, last = 0.0, 0, BOS
    for place, token in enumerate(target):
        row = language.logits[sentence, before, last].tolist()
        total += distribution(row, target[:place], **options)[token]
        before, last = last, token
    return total


def every_target(language, sentence, most, options):
    """The finished targets of at most `most` tokens with the end symbol, best first."""
    ended, targets = [], [()]
    for _ in range(most - 1):
        targets = [(*target, token) for target in targets for token in range(4, language.vocab)]
        ended += targets
    scored = [(log_probability(language, sentence, (*one, EOS), options), one) for one in ended]
    scored = [(total / ((6 + len(one)) / 6) ** 0.6, one) for total, one in scored]
    return sorted((one for one in scored if one[0] > -math.inf), reverse=True)


@every("options", SETTINGS)
def test_a_wide_beam_finds_the_best_of_all_changed_targets(toy, options):
    language = toy(batch=2, vocab=7, seed=7)
    found = beam_search(
        language.step,
        language.state(),
        OutputRules(
            torch.tensor([6, 6]), processors=SearchOptions(**options).processors(DEFAULT_IDS)
        ),
        beam=100,
        n_best=8,
    )
    for sentence in range(2):
        best = every_target(language, sentence, 6, options)[:8]
        assert [h.tokens for h in found[sentence]] == [target for _, target in best]
        assert [h.score for h in found[sentence]] == pytest.approx([score for score, _ in best])


@every("options", SETTINGS)
@every("search", [greedy, sample, partial(sample, n_best=3)])
def test_a_search_keeps_to_the_settings_and_scores_by_them(toy, search, options):
    language = toy(batch=3, vocab=11, seed=3, end=-1.0)
    found = search(
        language.step,
        language.state(),
        OutputRules(
            torch.tensor([12, 12, 12]), processors=SearchOptions(**options).processors(DEFAULT_IDS)
        ),
    )
    for sentence, hypotheses in enumerate(found):
        for h in hypotheses:
            target = (*h.tokens, EOS) if h.finished else h.tokens
            expected = log_probability(language, sentence, target, options)
            assert h.log_probability == pytest.approx(expected)
            assert len(h.tokens) >= options.get("min_length", 0)
            size = options.get("no_repeat_ngram", 99)
            ngrams = [h.tokens[i : i + size] for i in range(len(h.tokens) - size + 1)]
            assert len(set(ngrams)) == len(ngrams)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (RepetitionPenalty(1.7), RepetitionPenaltyLogitsProcessor(1.7)),
        *((NoRepeatNgram(size), NoRepeatNGramLogitsProcessor(size)) for size in (1, 2, 3, 4)),
    ],
    ids=["penalty", "1-gram", "2-gram", "3-gram", "4-gram"],
)
def test_a_processor_changes_logits_as_hugging_faces_does(ours, theirs):
    generator = torch.Generator().manual_seed(5)
    for length in (0, 1, 2, 3, 10):
        tokens = torch.randint(0, 3, (40, length), generator=generator)
        logits = torch.randn(40, 6, generator=generator)
        given = logits.clone()
        if length:  # theirs reads no empty target
            assert torch.equal(ours(given, tokens), theirs(tokens, logits.clone()))
        else:
            assert torch.equal(ours(given, tokens), logits)
        assert torch.equal(given, logits)


def test_settings_that_change_nothing_are_no_processors():
    assert SearchOptions().processors(DEFAULT_IDS) == []
    processors = SearchOptions(repetition_penalty=2.0, no_repeat_ngram=3, min_length=4).processors
    assert processors(DEFAULT_IDS) == [RepetitionPenalty(2.0), NoRepeatNgram(3), MinLength(4)]


class Endless:
    """A model that always writes 5, whose state is nothing."""

    def encode(self, source):
        return source

    def start(self, _memory):
        return self

    def select(self, _rows):
        return self

    def step(self, tokens, _state):
        logits = torch.zeros(len(tokens), 6)
        logits[:, EOS], logits[:, 5] = 9.0, 8.0
        return logits, self


def test_a_minimum_above_the_maximum_raises_the_maximum():
    [[target]] = decode_sentences(
        Endless(),
        [[4]],
        search=greedy,
        rules=partial(OutputRules, processors=[MinLength(7)]),
        settings=DecodingSettings(extra_length=2, min_length=7),
    )
    assert target.tokens == (5,) * 7
    assert target.finished
